"""A machine that gets short of memory and room at the test's word, and hands that help as much as it says."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.executor import Policy, Safety
from pulse_core.projections.gauges import STREAKS_FIELD, History, streaks, streaks_to_json
from pulse_core.watch.evaluate_resources import KINDS, conclude
from tests.simulation.world import RARE_SCANS, World, simulate

GIB = 1 << 30
KEY = "system-resource"
RESOURCES: Mapping[str, Any] = {
    "memory": {"raise": 0.9, "clear": 0.8, "for": "30s"},
    "swap": {"raise": 0.9, "clear": 0.7, "for": "30s"},
    "disk": {"path": "/", "raise": 0.9, "clear": 0.85},
    "clean": ["~/.cache/agent"],
    "sessions": {"root": "~/sessions"},
    "stop": ["batch"],
    "patience": "1m",
}


@dataclass
class Machine:
    """The sense `system-resource` of this machine: what it measures is what a test has set."""

    memory: float = 0.3
    swap: float = 0.0
    disk: float = 0.3
    inodes: float = 0.1
    stalled: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    consumers: list[dict[str, Any]] = field(default_factory=list)
    world: World | None = None
    interval: float = 5.0
    timeout: float = 2.0
    name = key = KEY
    conditions = KINDS
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    def should_wake(self, window: Window) -> bool:
        return False

    async def collect(self) -> Reading:
        assert self.world is not None
        assert self.world.daemon is not None
        daemon = self.world.daemon
        facts, last = daemon.parts.view(), daemon.watch.windows.get(KEY, Window()).last
        data = self.measured()
        if any(facts.conditions[name] for name in ("memory", "swap", "pressure:memory")):
            data["consumers"] = list(self.consumers)
        patience = max(60_000_000, round(3e6 * self.interval))
        history = History(facts.conditions, streaks(last.data) if last else {}, patience)
        drafts, over = conclude(data, self.world.settings.resources, history, self.world.clock.now())
        return Reading(data | {STREAKS_FIELD: streaks_to_json(over)}, drafts)

    def measured(self) -> dict[str, Any]:
        disk = {"error": self.error} if self.error else {"used": self.disk, "free": 1, "inodes": self.inodes}
        return {
            "memory": self.memory, "memory_available": 1, "memory_total": 16 * GIB,
            "swap": self.swap, "swap_total": GIB, "disks": {"/": disk},
            "psi": {name: {"full": self.stalled.get(name, 0.0)} for name in ("memory", "io")},
        }  # fmt: skip


def consumer(pid: int, rss: float, swap: float = 0.0, name: str = "batch") -> dict[str, Any]:
    """Somebody who may be stopped; sizes in GiB."""
    held = {"rss": round(rss * GIB), "swap": round(swap * GIB)}
    return {"pid": pid, "started": pid * 10, "name": name, "pattern": "batch", **held}


@dataclass
class Hand(MemoryExecutor):
    """Does what a test wants done, and fails if that raises."""

    helps: Callable[[Event], object] = lambda _event: None

    def __post_init__(self) -> None:
        self.rule = Policy(Safety.IDEMPOTENT, timeout=7_200)
        self.deed = self._do

    async def _do(self, event: Event) -> None:
        await asyncio.sleep(1)
        self.helps(event)


class Story:
    """A world with this machine in it, and the words to ask it what happened."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world, self.machine = world, machine
        machine.world = world
        self.hands = {action: Hand(action) for action in ("clean-paths", "archive-sessions", "stop-process")}
        world.executors |= self.hands

    async def begin(self) -> None:
        await self.world.start()

    async def again(self) -> None:
        """The daemon dies, and another one takes its place."""
        await self.world.crash()
        await self.world.start()

    def actions(self, since: float = 0) -> list[str]:
        """The measures wished for, in order."""
        return [wish["action"] for _, wish in self.wishes(since) if wish["action"] != "notify"]

    def wishes(self, since: float = 0) -> list[tuple[float, dict[str, Any]]]:
        events = [one for one in self.world.events("effect") if one.subject != "notify:daemon"]
        return [(event.mono / 1e6, json.loads(event.data)) for event in events if event.mono / 1e6 >= since]

    def times(self, action: str) -> list[float]:
        return [second for second, wish in self.wishes() if wish["action"] == action]

    def titles(self) -> list[str]:
        return [wish["params"]["title"] for _, wish in self.wishes() if wish["action"] == "notify"]

    def texts(self) -> list[str]:
        return [wish["params"]["text"] for _, wish in self.wishes() if wish["action"] == "notify"]

    def stopped(self) -> list[int]:
        """The pids that were to be stopped, in order."""
        told = [wish for _, wish in self.wishes() if wish["action"] == "stop-process"]
        return [wish["params"]["consumer"]["pid"] for wish in told]

    async def notes(self) -> list[str]:
        """What resource_guard noted in its last tick."""
        record = (await self.world.vitals.ticks(1))[-1]
        return next(list(layer.notes) for layer in record.layers if layer.rule == "resource_guard")

    def news(self) -> list[str]:
        kinds = ("condition-raised", "condition-cleared")
        return [
            f"{event.kind.removeprefix('condition-')} {event.subject}" for event in self.world.events(*kinds)
        ]


def live(tell: Callable[[Story], Any], resources: Mapping[str, Any] | None = None, **more: Any) -> World:
    """Tell a story of this machine in virtual time; `resources` differ from the usual ones."""
    machine = Machine()

    async def told(world: World) -> None:
        story = Story(world, machine)
        await story.begin()
        await tell(story)

    settings = {**RARE_SCANS, "resources": {**RESOURCES, **(resources or {})}, **more}
    return simulate(told, settings, watchers=(machine,))


def failing(words: str) -> Callable[[Event], None]:
    """A deed that does not work."""

    def deed(_event: Event) -> None:
        raise PulseError(words)

    return deed
