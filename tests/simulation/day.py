"""An ordinary day of a machine: every sense, every rule, deaths, shortages, outages, notices, and people who ask."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pulse_adapters.memory.executors import MemoryStop
from pulse_adapters.memory.network import MemoryProber, MemoryTransport
from pulse_adapters.notify.executor import Notify
from pulse_core.model.errors import LogUnavailable, PulseError
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    Paused,
    ProcessStartRequested,
    ProcessStopRequested,
    ReloadRequested,
    Resumed,
)
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.state import State
from pulse_core.silences.events import SilenceAdded
from tests.simulation.machine import RESOURCES, Hand, Machine, consumer
from tests.simulation.senses import of_logs, of_network
from tests.simulation.thin import ThinLogs, thinned
from tests.simulation.world import World, simulate

MINUTE, HOUR = 60, 3_600
NAMES = ("gateway", "worker", "litellm")
URL, PAGE, APP = "http://127.0.0.1:4000/health", "http://192.0.2.1/", "/var/log/agent.log"
SETTINGS: dict[str, Any] = {
    "process": [
        {"name": "gateway", "start": ["gateway"], "tcp": "127.0.0.1:1"},
        {"name": "worker", "start": ["worker"], "depends_on": ["gateway"]},
        {"name": "litellm", "start": ["litellm"], "match": "litellm"},
    ],
    "resources": {**RESOURCES},
    "network": {"dns": ["one.example", "two.example"], "http": [PAGE]},
    "llm": [{"url": URL, "restart": "litellm"}],
    "log": [{"path": APP, "keywords": ["ERROR"]}],
    "notify": {"urls": ["json://people"]},
    "silence": [{"match": "notify:log:*", "at": "03:00", "for": "1h"}],
}
DEAD = ProbeResult(Trouble.TIMEOUT, "nobody answered", 5_000)
Deed = Callable[[], Awaitable[None]]


@dataclass
class Stop(MemoryStop):
    """Ends a guarded process, or whoever uses up the machine's memory."""

    machine: Machine = field(default_factory=Machine)

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        if "consumer" not in effect.params:
            return await super().outcome(effect)
        self.machine.memory = 0.5
        return {}


class Day:
    """Lets things happen to a world, each at its own rate, as the dice fall."""

    def __init__(self, world: World, dice: Random) -> None:
        self.world, self.dice = world, dice
        self.machine, self.prober, self.logs, self.transport = (
            Machine(),
            MemoryProber(),
            ThinLogs(),
            MemoryTransport(),
        )
        self.prober.asked = deque(maxlen=10)  # type: ignore[assignment]  # a list that forgets
        self.transport.arrived = deque(maxlen=10)  # type: ignore[assignment]  # as above
        self.machine.world = world
        self._number = 0
        world.executors["stop-process"] = Stop(host=world.host, machine=self.machine)
        thinned(world)
        for action in ("clean-paths", "archive-sessions"):
            world.executors[action] = Hand(action)
        self._senses()

    def _senses(self) -> None:
        """What a daemon of this world looks with."""
        world = self.world
        world.watchers = (self.machine, *of_network(world, self.prober), of_logs(world, self.logs))

    async def begin(self) -> None:
        """A daemon, with the real notifier."""

        def view() -> State:
            assert self.world.daemon is not None
            return self.world.daemon.parts.view()

        notify = Notify(
            lambda: self.world.settings, self.transport, self.world.clock, environment={}, view=view
        )
        self.world.executors["notify"] = notify
        daemon = await self.world.start()
        daemon.journal.listen_once(notify.log_notices)

    async def live(self, hours: float) -> None:
        """So many hours, in which each deed comes about so often as its mean pause says, in seconds."""
        deeds: dict[Deed, float] = {
            self.kill: 10 * MINUTE, self.hang: HOUR, self.run_short: 2 * HOUR, self.lose_network: 4 * HOUR,
            self.lose_model: 4 * HOUR, self.write: 20, self.storm: 6 * HOUR, self.wish: 5 * MINUTE,
            self.stop_one: HOUR, self.pause: 6 * HOUR, self.silence: 2 * HOUR, self.fill_disk: 6 * HOUR,
            self.reload: 2 * HOUR, self.look: 30,
        }  # fmt: skip
        doing = [asyncio.create_task(self._again_and_again(*one)) for one in deeds.items()]
        try:
            await asyncio.sleep(hours * HOUR)
        finally:
            for task in doing:
                task.cancel()
            await asyncio.gather(*doing, return_exceptions=True)
            self.mend()

    async def _again_and_again(self, deed: Deed, pause: float) -> None:
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / pause))
            try:
                await deed()
            except PulseError:
                continue  # asked while the disk took nothing: a person would try again later

    def mend(self) -> None:
        """Everything is well again."""
        self.machine.memory = self.machine.disk = 0.3
        self.prober.says.clear()
        self.world.log.commit = None
        for body in self.world.host.processes.values():
            body.answering = True

    async def kill(self) -> None:
        self.world.host.kill(self.dice.choice(NAMES))

    async def hang(self) -> None:
        if body := self.world.host.processes.get("gateway"):
            body.answering = False

    async def run_short(self) -> None:
        """Memory and the disk fill up, somebody big is to blame, and after a while it is over."""
        self.machine.consumers = [consumer(self.dice.randrange(1_000, 9_000), 12)]
        self.machine.memory, self.machine.disk = 0.95, self.dice.choice((0.3, 0.95))
        await asyncio.sleep(self.dice.uniform(1, 15) * MINUTE)
        self.machine.memory = self.machine.disk = 0.3

    async def lose_network(self) -> None:
        self.prober.says |= dict.fromkeys(("one.example", "two.example", PAGE), DEAD)
        await asyncio.sleep(self.dice.uniform(1, 20) * MINUTE)
        for target in ("one.example", "two.example", PAGE):
            self.prober.says.pop(target, None)

    async def lose_model(self) -> None:
        self.prober.says[URL] = ProbeResult(status=500, took_ms=20.0)
        await asyncio.sleep(self.dice.uniform(1, 10) * MINUTE)
        self.prober.says.pop(URL, None)

    async def write(self) -> None:
        self._number += 1
        self.logs.begin_minute()
        bad = self.dice.random() < 0.05
        self.logs.write(APP, f"request {self._number} {'ERROR: it failed' if bad else 'done'}")

    async def storm(self) -> None:
        for _ in range(30):
            self.logs.write(APP, *(f"ERROR {self._number}" for _ in range(50)))
            await asyncio.sleep(1)

    async def wish(self) -> None:
        self._number += 1
        await self.world.ask(Effect(action="note", key=f"by-hand:{self._number}"))

    async def stop_one(self) -> None:
        name = self.dice.choice(NAMES)
        await self.world.ask(ProcessStopRequested(expires_us=10 * MINUTE * 1_000_000), name)
        await asyncio.sleep(self.dice.uniform(1, 20) * MINUTE)
        await self.world.ask(ProcessStartRequested(), name)

    async def pause(self) -> None:
        await self.world.ask(Paused())
        await asyncio.sleep(self.dice.uniform(1, 10) * MINUTE)
        await self.world.ask(Resumed())

    async def silence(self) -> None:
        match = f"restart-process:{self.dice.choice(NAMES)}"
        await self.world.ask(SilenceAdded(expires_us=self.dice.randint(1, 20) * MINUTE * 1_000_000), match)

    async def fill_disk(self) -> None:
        async def full() -> None:
            raise LogUnavailable("the disk is full")

        self.world.log.commit = full
        await asyncio.sleep(self.dice.uniform(5, 120))
        self.world.log.commit = None

    async def reload(self) -> None:
        await self.world.ask(ReloadRequested())

    async def look(self) -> None:
        """Somebody asks how everything stands."""
        assert self.world.daemon is not None
        self.world.daemon.report()


def lived(
    hours: int, look: Callable[[int, Day], None], seed: int = 0, settings: dict[str, Any] | None = None
) -> World:
    """Live so many hours, and look after each: at its number, and at the day."""

    async def story(world: World) -> None:
        day = Day(world, Random(seed))
        await day.begin()
        for hour in range(1, hours + 1):
            await day.live(1)
            look(hour, day)

    return simulate(story, settings or SETTINGS, dice=Random(seed))
