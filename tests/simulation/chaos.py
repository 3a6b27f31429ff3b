"""One seed, one life: a machine on which everything goes wrong for a while, and what must hold all the same."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pulse_adapters.memory.executors import MemoryExecutor, MemoryStop
from pulse_core.composition import FOLD
from pulse_core.model.errors import LogUnavailable, PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import (
    Effect,
    EffectCancelRequested,
    Paused,
    ProcessStartRequested,
    ProcessStopRequested,
    Resumed,
)
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import Role
from pulse_core.ports.executor import Policy, Safety
from pulse_core.rules.survival.process_watchdog import STOP_TRIES
from tests.long_form import sample
from tests.simulation.world import World, simulate

NAMES = ("gateway", "worker", "agent")
SETTINGS: dict[str, Any] = {
    "process": [
        {"name": "gateway", "start": ["g"], "tcp": "127.0.0.1:1"},
        {"name": "worker", "start": ["w"], "depends_on": ["gateway"]},
        {"name": "agent", "start": ["a"], "match": "a", "restart": {"max": 3, "backoff": "500ms"}},
    ]
}
SAFETIES = {f"{safety.value}-note": safety for safety in Safety}
HOUR, MINUTE_US = 3_600, 60_000_000


@dataclass
class Chaos:
    """Does bad things to a world, as its dice fall, and remembers what was acknowledged."""

    world: World
    dice: Random
    acknowledged: list[Event] = field(default_factory=list)
    asked: int = 0

    async def deed(self, _event: Event) -> None:
        await asyncio.sleep(self.dice.random() * 3)
        if self.dice.random() < 0.3:
            raise PulseError("it did not work")

    async def do_something(self) -> None:
        deeds = (
            self.kill, self.kill, self.hang, self.heal, self.doom, self.wish, self.wish, self.cancel, self.stop_one,
            self.start_one, self.pause, self.resume, self.crash, self.crash_in_a_commit, self.restart, self.jump,
            self.fill_disk, self.born_elsewhere, self.restart_by_hand, self.hang_up,
        )  # fmt: skip
        await self.dice.choice(deeds)()
        await asyncio.sleep(self.dice.expovariate(0.2))

    async def kill(self) -> None:
        self.world.host.kill(self.dice.choice(NAMES))

    async def hang(self) -> None:
        if body := self.world.host.processes.get("gateway"):
            body.answering = False

    async def born_elsewhere(self) -> None:
        """Somebody starts a dead process by hand."""
        name = self.dice.choice(NAMES)
        if name not in self.world.host.processes:
            self.world.host.start(name)

    async def restart_by_hand(self) -> None:
        """Somebody asks for a restart under a key of their own."""
        self.asked += 1
        params = {"process": self.dice.choice(NAMES)}
        await self.ask(Effect(action="restart-process", key=f"by-hand:{self.asked}", params=params))

    async def hang_up(self) -> None:
        """A caller is gone before its answer is."""
        self.asked += 1
        assert self.world.daemon is not None
        wish = Draft(Effect(action="idempotent-note", key=f"note:{self.asked % 7}"))
        asking = asyncio.create_task(self.world.daemon.gate.append(Role.PERSON, "gone", [wish]))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])

    async def heal(self) -> None:
        self.world.host.dying.clear()

    async def doom(self) -> None:
        self.world.host.dying.add(self.dice.choice(NAMES))

    async def ask(self, payload: Any, subject: str = "") -> None:
        with suppress(PulseError):
            self.acknowledged.append(await self.world.ask(payload, subject))

    async def wish(self) -> None:
        self.asked += 1
        await self.ask(Effect(action=self.dice.choice(list(SAFETIES)), key=f"note:{self.asked % 7}"))

    async def cancel(self) -> None:
        assert self.world.daemon is not None
        if open_ := list(self.world.daemon.parts.view().effects.open):
            await self.ask(EffectCancelRequested(), self.dice.choice(open_))

    async def stop_one(self) -> None:
        await self.ask(
            ProcessStopRequested(expires_us=self.dice.randint(1, 5) * MINUTE_US), self.dice.choice(NAMES)
        )

    async def start_one(self) -> None:
        await self.ask(ProcessStartRequested(), self.dice.choice(NAMES))

    async def pause(self) -> None:
        await self.ask(Paused())

    async def resume(self) -> None:
        await self.ask(Resumed())

    async def restart(self) -> None:
        await self.world.end()
        await self.world.start()

    async def crash(self) -> None:
        await self.world.crash()
        if self.dice.random() < 0.2:
            self.world.host.processes.clear()
            self.world.clock.reboot()
        await asyncio.sleep(self.dice.random() * 20)
        await self.world.start()

    async def crash_in_a_commit(self) -> None:
        """Die before or after rows reached the disk, in either case before anybody was told."""
        point = asyncio.Event()

        async def reached() -> None:
            point.set()
            await asyncio.sleep(1)

        side = self.dice.choice(("commit", "committed"))
        setattr(self.world.log, side, reached)
        try:
            await asyncio.wait_for(point.wait(), 30)
        except TimeoutError:
            return
        finally:
            setattr(self.world.log, side, None)
        await self.crash()

    async def jump(self) -> None:
        self.world.clock.jump(self.dice.randint(-(10**13), 10**13))

    async def fill_disk(self) -> None:
        async def full() -> None:
            raise LogUnavailable("the disk is full")

        self.world.log.commit = full
        await asyncio.sleep(self.dice.random() * 40)
        self.world.log.commit = None

    async def calm(self) -> None:
        """Everything is mended, and there is time."""
        self.world.host.dying.clear()
        for body in self.world.host.processes.values():
            body.answering = True
        await self.ask(Resumed())
        for name in NAMES:
            await self.ask(ProcessStartRequested(), name)
        until = asyncio.get_running_loop().time() + 3 * HOUR
        while not self.is_well() and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(60)
        await asyncio.sleep(sample(HOUR / 3, 3 * HOUR))  # and it stays so

    def is_well(self) -> bool:
        """Whether all are up, and no wish is open."""
        assert self.world.daemon is not None
        return (
            set(self.world.host.processes) == set(NAMES) and not self.world.daemon.parts.view().effects.open
        )


def live(seed: int, deeds: int) -> World:
    """One life of so many deeds. Raises AssertionError where a law is broken."""
    dice = Random(seed)
    chaos: list[Chaos] = []

    async def story(world: World) -> None:
        chaos.append(one := Chaos(world, dice))
        for action, safety in SAFETIES.items():
            policy = Policy(safety, timeout=10, retries=2)
            world.executors[action] = MemoryExecutor(action, policy, one.deed)
        stop = Policy(Safety.IDEMPOTENT, timeout=10)
        world.executors["stop-process"] = MemoryStop(host=world.host, deed=one.deed, rule=stop)
        await world.start()
        for _ in range(deeds):
            await one.do_something()
        await one.calm()
        assert world.daemon is not None
        assert world.daemon.parts.view() == FOLD(FOLD.start, world.log.events), (
            "the view is not the log's fold"
        )
        assert set(world.host.processes) == set(NAMES), f"only {sorted(world.host.processes)} are up"

    world = simulate(story, SETTINGS, dice=Random(seed))
    check(world, chaos[0])
    return world


def check(world: World, chaos: Chaos) -> None:
    """The laws that hold for every log."""
    assert not world.host.started_twice, f"started while it lived: {world.host.started_twice}"
    events = world.log.events
    recorded = {event.id for event in events}
    assert all(event.id in recorded for event in chaos.acknowledged), "an acknowledged event is gone"
    wishes = {event.id for event in events if event.kind == "effect"}
    settled = Counter(event.subject for event in events if event.kind in SETTLING)
    assert set(settled) == wishes, "an effect was left unsettled, or something else was settled"
    assert set(settled.values()) <= {1}, "an effect was settled twice"
    once = world.executors[f"{Safety.AT_MOST_ONCE.value}-note"]
    assert max(Counter(once.began).values(), default=0) <= 1, "an at-most-once action ran twice"
    executing = {event.subject for event in events if event.kind == "effect-executing"}
    assert set(once.began) <= executing, "an action began before that was on disk"
    for name in NAMES:
        assert max(stops_by_intent(events, name), default=0) <= STOP_TRIES, "a stop was tried too often"
    verified = world.executors[f"{Safety.VERIFY_FIRST.value}-note"]
    assert max(Counter(verified.done).values(), default=0) <= 1, "a verify-first action was done twice"


def stops_by_intent(events: Sequence[Event], name: str) -> list[int]:
    """How often each stop that a person wanted was tried."""
    tried: list[int] = []
    for event in events:
        if event.kind == ProcessStopRequested.kind and event.subject == name:
            tried.append(0)
        elif event.subject == f"stop-process:{name}":
            tried[-1] += 1
    return tried
