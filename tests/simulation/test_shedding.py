"""Pulse takes too much, and the whole daemon does less: in virtual time."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulse_core.composition import SURVIVAL
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.home_status import ShedStatus
from pulse_core.model.kinds import WorkShed
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Reading, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner
from tests.simulation.world import World, simulate

pytestmark = pytest.mark.usefixtures("usual_rounds")

MIB = 1 << 20
GATEWAY = {"name": "gateway", "start": ["gateway"]}
NONE: ShedStatus = {"level": 0, "measures": [], "evidence": ""}
SETTINGS = {"process": [GATEWAY], "self": {"memory_mb": 100}, "daemon": {"tick_ms": 1_000}}


@dataclass
class Sense:
    """A watcher that looks at nothing but the clock, unless it is the one of the system: then it tells a size."""

    name: str
    interval: float = 5.0
    timeout: float = 2.0
    rss: int = 200 * MIB
    looks: list[float] = field(default_factory=list)
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> str:
        return self.name

    async def collect(self) -> Reading:
        self.looks.append(asyncio.get_running_loop().time())
        return Reading({"self_cpu": 0.0, "self_rss": self.rss, "loop_late_ms": 0.0})

    def should_wake(self, window: Window) -> bool:
        return False

    def looks_in(self, seconds: float) -> int:
        now = asyncio.get_running_loop().time()
        return sum(now - seconds < then <= now for then in self.looks)


def said(world: World) -> list[tuple[int, int]]:
    """The levels that were said, each with how many measures it names."""
    shed = [json.loads(event.data) for event in world.events(WorkShed.kind)]
    return [(one["level"], len(one.get("measures", ()))) for one in shed]


def system() -> Sense:
    return Sense("system-resource")


def told(story: Callable[[World], Any], *watchers: Sense, **more: Any) -> World:
    return simulate(story, SETTINGS, watchers=watchers, **more)


def test_every_step_is_said_and_shown_and_taken_back() -> None:
    eye = system()

    async def story(world: World) -> None:
        daemon = await world.start()
        assert daemon.report()["shed"] is None
        await asyncio.sleep(180)
        assert said(world) == [(1, 1), (2, 2), (3, 3), (4, 4)]
        assert (daemon.report()["shed"] or NONE)["level"] == 4
        evidence = str((daemon.report()["shed"] or NONE)["evidence"])
        assert evidence.startswith("200.0 MiB of memory")
        assert evidence.endswith("are allowed, at the last step"), "it may be less by now"
        eye.rss = 10 * MIB
        await asyncio.sleep(600)
        assert said(world)[4:] == [(3, 3), (2, 2), (1, 1), (0, 0)]
        assert daemon.report()["shed"] is None

    told(story, eye)


def test_watchers_look_less_often_and_the_one_that_measures_does_not() -> None:
    eye, other = system(), Sense("network")

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        before = other.looks_in(20)
        await asyncio.sleep(270)
        assert (before, other.looks_in(20), eye.looks_in(20)) == (4, 1, 4)
        eye.rss = 0
        await asyncio.sleep(700)
        assert other.looks_in(20) == 4

    told(story, eye, other)


def test_a_log_that_is_written_all_the_time_is_read_every_five_seconds() -> None:
    eye, log, other = system(), Sense("error-log"), Sense("network")

    async def nudging() -> None:
        while True:
            log.nudge.set()
            other.nudge.set()
            await asyncio.sleep(0.1)

    async def story(world: World) -> None:
        await world.start()
        storm = asyncio.create_task(nudging())
        await asyncio.sleep(20)
        before = log.looks_in(10)
        await asyncio.sleep(280)
        assert before > 90
        assert log.looks_in(10) == 2
        assert other.looks_in(10) > 90
        storm.cancel()

    told(story, eye, log, other)


async def kept(world: World) -> int:
    return len(await world.vitals.recent(0))


def test_vitals_go_to_disk_no_more_but_with_a_tick_that_acts() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(180)
        before, ticks = await kept(world), len(await world.vitals.ticks(10_000))
        await asyncio.sleep(600)
        assert await kept(world) - before <= 2
        assert len(await world.vitals.ticks(10_000)) - ticks <= 3
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert ("restart-process:gateway",) in [tick.effects for tick in await world.vitals.ticks(10_000)]

    told(story, system())


def test_the_reflex_is_never_shed() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        assert said(world)[-1] == (4, 4)
        began = asyncio.get_running_loop().time()
        starts = len(world.host.starts)
        world.host.kill("gateway")
        while len(world.host.starts) == starts:
            await asyncio.sleep(0.001)
        assert asyncio.get_running_loop().time() - began < 0.1

    told(story, system())


def test_rules_inside_are_not_asked_at_the_last_step_and_then_again() -> None:
    asked: list[int] = []
    eye = system()

    async def inside(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        asked.append(curr.tick)
        return (await inner(prev, curr)).within(10_000)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(130)
        assert asked
        await asyncio.sleep(60)
        before = len(asked)
        await asyncio.sleep(600)
        assert len(asked) == before
        eye.rss = 0
        await asyncio.sleep(200)
        assert len(asked) > before

    told(story, eye, rules=(inside,))


def test_a_new_daemon_sheds_nothing_of_what_an_earlier_one_took() -> None:
    eye = system()

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(180)
        await world.crash()
        eye.rss = 10 * MIB
        daemon = await world.start()
        assert daemon.report()["shed"] is None
        await asyncio.sleep(300)
        assert said(world) == [(1, 1), (2, 2), (3, 3), (4, 4)]

    told(story, eye)


@pytest.mark.parametrize("allowed", [100, 300])
def test_memory_mb_sets_what_is_too_much(allowed: int) -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60)
        assert bool(said(world)) is (allowed == 100)

    simulate(story, {"self": {"memory_mb": allowed}}, watchers=(system(),))


def test_a_full_disk_keeps_nothing_from_being_shed() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        fill_disk(world)
        await asyncio.sleep(50)
        assert (daemon.report()["shed"] or NONE)["level"] == 1
        assert said(world) == []
        free_disk(world)
        await asyncio.sleep(5)
        assert said(world) == [(1, 1)]

    told(story, system())


def fill_disk(world: World) -> None:
    async def full() -> None:
        raise LogUnavailable("the disk is full")

    world.log.commit = full


def free_disk(world: World) -> None:
    world.log.commit = None


def test_a_tick_that_hangs_is_no_progress() -> None:
    goes_on = asyncio.Event()
    goes_on.set()

    async def hanging(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await goes_on.wait()
        return await inner(prev, curr)

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.ticker.folding.survival = (hanging, *SURVIVAL)
        await asyncio.sleep(60)
        assert await daemon.is_turning(10)
        goes_on.clear()
        await asyncio.sleep(10)
        assert not await daemon.is_turning(10)
        goes_on.set()
        await asyncio.sleep(1)
        assert await daemon.is_turning(10)

    told(story)


def test_a_tick_whose_disk_does_not_answer_goes_on_without_it() -> None:
    async def story(world: World) -> None:
        daemon, answers = await world.start(), asyncio.Event()
        await asyncio.sleep(60)
        world.log.commit = answers.wait  # type: ignore[assignment]
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert "gateway" in world.host.processes
        assert await daemon.is_turning(10)
        answers.set()
        await asyncio.sleep(1)
        assert await daemon.is_turning(10)

    told(story)
