"""A whole machine in memory and virtual time, with a daemon on it that can be killed and started again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.daemon_control import MemoryServiceManager
from pulse_adapters.memory.executors import MemoryExecutor, MemoryHost, MemoryRestart, MemoryStop
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryObjects, MemoryVitals
from pulse_core.composition import RULES
from pulse_core.daemon import CurrentSettings, Daemon, Parts
from pulse_core.daemon.parts import Service, nothing_to_sweep
from pulse_core.engine.engine_context import EngineParts
from pulse_core.model.event import Draft, Event
from pulse_core.model.payload import Payload, Role
from pulse_core.ports.executor import Executor
from pulse_core.ports.stores import Sweep
from pulse_core.ports.watcher import Watcher
from pulse_core.record.view import View
from pulse_core.rules import Rule
from pulse_core.settings.settings import Settings

RARE_SCANS = {"daemon": {"tick_ms": 60_000}}
"""For stories of days: ticks come once a minute, as looks at the open wishes do, unless there is news of them."""
RARE_LOOKS: Mapping[str, Any] = {"watch": {"process_interval": "1m"}}
"""For stories of something else than guarded processes, whose deaths are news besides: they are looked at once a minute."""
RARE: Mapping[str, Any] = {**RARE_SCANS, **RARE_LOOKS}
"""For stories of days in which no moment matters: both are rare."""


@dataclass
class World:
    """What outlives a daemon: the log, the stores, the machine and the clock."""

    settings: Settings
    clock: VirtualClock
    dice: Random = field(default_factory=lambda: Random(0))
    host: MemoryHost = field(default_factory=MemoryHost)
    rules: Sequence[Rule] = RULES
    engine: EngineParts | None = None
    watchers: Sequence[Watcher] = ()
    optional_watchers: Sequence[Watcher] = ()
    sweep: Sweep = nothing_to_sweep
    services: Mapping[str, Service] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = MemoryLog(self.clock)
        self.vitals, self.objects, self.checkpoints = MemoryVitals(), MemoryObjects(), MemoryCheckpoints()
        self.service_manager = MemoryServiceManager()
        made: Sequence[MemoryExecutor] = (
            MemoryRestart(host=self.host),
            MemoryStop(host=self.host),
            MemoryExecutor("notify"),
            MemoryExecutor("note"),
        )
        self.executors: dict[str, Any] = {executor.action: executor for executor in made}
        self.daemon: Daemon | None = None
        self.stop = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.remains: list[tuple[str, list[int]]] = []
        """The effects of which the remains were ended, and how often they had begun."""
        self._ids = 0
        self.cpu = 0.0
        """Seconds of processor time that the loop has used; whoever asks uses ten microseconds."""
        self.may_break = False
        """Whether a capability may be set aside in this story."""

    def new_id(self) -> str:
        self._ids += 1
        return f"wish-{self._ids:08}"

    async def _end_remains(self, effect: str) -> None:
        made = [one for one in self.executors.values() if isinstance(one, MemoryExecutor)]
        self.remains.append((effect, [len(one.began) for one in made if effect in one.began]))

    def _used_cpu(self) -> float:
        self.cpu += 1e-5
        return self.cpu

    async def _load(self) -> Settings:
        return self.settings

    async def start(self) -> Daemon:
        """A new daemon on this machine, running when this returns."""
        view, self.stop = View(), asyncio.Event()
        executors: dict[str, Executor] = dict(self.executors)
        self.log.forget_listeners()
        self.daemon = Daemon(
            Parts(
                log=self.log,
                vitals=self.vitals,
                objects=self.objects,
                checkpoints=self.checkpoints,
                clock=self.clock,
                table=self.host,
                health=self.host,
                executors=executors,
                current_settings=CurrentSettings(self.settings, self._load),
                view=view,
                service_manager=self.service_manager,
                new_id=self.new_id,
                dice=self.dice,
                pid=1,
                version="0",
                watchers=self.watchers,
                optional_watchers=self.optional_watchers,
                rules=self.rules,
                engine=self.engine,
                sweep=self.sweep,
                services=self.services,
                end_remains=self._end_remains,
                cpu=self._used_cpu,
            )
        )
        before = self.service_manager.told.count("ready")
        self._life = asyncio.create_task(self.daemon.run(self.stop), name="daemon")
        while self.service_manager.told.count("ready") == before:
            if self._life.done():
                self._life.result()
            await asyncio.sleep(0.001)
        return self.daemon

    async def end(self) -> None:
        """Stop the daemon as systemd would."""
        assert self._life is not None
        self.stop.set()
        await self._life

    async def crash(self) -> None:
        """End the daemon in the middle of whatever it does, as SIGKILL would: nothing more is recorded."""
        assert self._life is not None
        self.log.forget_listeners()
        self.log.deaf = True
        self._life.cancel()
        await asyncio.wait([self._life])
        await self.log.break_off()
        self.log.deaf = False
        self.host.hold((), lambda _: None)

    async def ask(self, payload: Payload, subject: str = "", actor: str = "person") -> Event:
        """Record what a person asks for, through the front door."""
        assert self.daemon is not None
        recorded = await self.daemon.gate.append(Role.PERSON, actor, [Draft(payload, subject)])
        return recorded[0].event

    def events(self, *kinds: str, subject: str | None = None) -> list[Event]:
        return [
            event
            for event in self.log.events
            if (not kinds or event.kind in kinds) and (subject is None or event.subject == subject)
        ]


def simulate(story: Callable[[World], Awaitable[None]], settings: dict[str, Any], **world: Any) -> World:
    """Tell a story in virtual time; the world as it was at its end.

    The safety-net scan for due effects comes once a minute, unless the settings say otherwise: whoever is due is due by
    news of it.
    """
    loop = virtual_loop()
    try:
        rare = {"executor_scan_interval_ms": 60_000, **settings.get("daemon", {})}
        valid = Settings.model_validate({**settings, "daemon": rare})
        made = World(valid, VirtualClock(loop.time), **world)
        loop.run_until_complete(_told(story, made))
        return made
    finally:
        for task in (left := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True) if left else asyncio.sleep(0))
        loop.close()  # not its threads' pool: virtual time does not wait for real threads


async def _told(story: Callable[[World], Awaitable[None]], world: World) -> None:
    try:
        await story(world)
        assert world.may_break or not (world.daemon and world.daemon.parts.view().broken)
    finally:
        if world._life is not None and not world._life.done():
            await world.end()
