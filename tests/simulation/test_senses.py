"""Watchers: each by itself, none in another's way."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionRaised, Effect
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Reading, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner
from tests.simulation.world import RARE_SCANS, World, simulate


@dataclass
class Probe:
    """A watcher whose sense is the test's."""

    name: str
    sense: Callable[[], Any]
    interval: float = 5.0
    timeout: float = 2.0
    threshold: float | None = None
    looks: list[float] = field(default_factory=list)
    nudge: asyncio.Event = field(default_factory=asyncio.Event)
    conditions: tuple[str, ...] = ()
    concluded: Sequence[Draft] = ()

    @property
    def key(self) -> str:
        return self.name

    async def collect(self) -> Reading:
        self.looks.append(asyncio.get_running_loop().time())
        value = self.sense()
        if asyncio.iscoroutine(value):
            value = await value
        return Reading({"value": value}, tuple(self.concluded))

    def should_wake(self, window: Window) -> bool:
        return self.threshold is not None and window.values("value")[-1] > self.threshold


def broken() -> Any:
    raise ValueError("no such sensor")


def cancelled() -> Any:
    raise asyncio.CancelledError


def errors(world: World) -> list[str]:
    return [event.subject for event in world.events("error")]


def test_every_watcher_keeps_its_own_time() -> None:
    slow, quick = Probe("slow", lambda: 1, interval=10), Probe("quick", lambda: 1, interval=1)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60.5)
        assert (len(slow.looks), len(quick.looks)) == (7, 61)

    simulate(story, {}, watchers=(slow, quick))


@pytest.mark.parametrize(
    "bad",
    [
        Probe("bad", broken),
        Probe("bad", cancelled),
        Probe("bad", lambda: asyncio.sleep(10**9)),
        Probe("bad", lambda: 1, concluded=[cast(Draft, "nonsense")]),
        Probe("bad", lambda: "not a number", threshold=1.0),
    ],
    ids=["raises", "cancels itself", "hangs", "concludes nonsense", "does not know whether to wake"],
)
def test_a_watcher_that_fails_is_backed_off_said_once_and_disturbs_nobody(bad: Probe) -> None:
    good = Probe("good", lambda: 1)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        assert 1 < len(bad.looks) < 10
        assert len(good.looks) >= 60
        assert errors(world) == ["watcher:bad"]

    simulate(story, {}, watchers=(bad, good))


def test_a_timeout_of_what_a_watcher_asks_is_told_as_that() -> None:
    def asking() -> Any:
        raise TimeoutError("the file system of /srv does not answer")

    async def story(world: World) -> None:
        await world.start()
        (error,) = world.events("error")
        assert json.loads(error.data)["message"] == "TimeoutError: the file system of /srv does not answer"

    simulate(story, {}, watchers=(Probe("bad", asking),))


def test_a_watcher_that_raises_a_condition_which_it_does_not_name_as_its_own_is_reported() -> None:
    raised = [Draft(ConditionRaised(evidence="it is so"), name) for name in ("tide:high", "wind")]
    probe = Probe("tide", lambda: 1, interval=600, conditions=("tide:",), concluded=raised)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        (error,) = world.events("error")
        assert "wind is none of its `conditions`" in error.data

    simulate(story, {}, watchers=(probe,))


def test_a_watcher_that_never_recovers_fills_no_log() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(86_400)
        assert len(errors(world)) < 150

    seldom = {"watch": {"process_interval": "10m", "system_interval": "10m"}}
    simulate(story, {**RARE_SCANS, **seldom}, watchers=(Probe("bad", broken),))


def test_a_watcher_that_recovers_is_as_quick_as_before() -> None:
    state = {"ill": True}
    probe = Probe("moody", lambda: broken() if state["ill"] else 1)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        state["ill"] = False
        await asyncio.sleep(400)
        before = len(probe.looks)
        await asyncio.sleep(50)
        assert len(probe.looks) - before == 10

    simulate(story, {}, watchers=(probe,))


def test_a_nudge_is_answered_at_once() -> None:
    probe = Probe("nudged", lambda: 1, interval=1_000)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        probe.nudge.set()
        await asyncio.sleep(0.01)
        assert len(probe.looks) == 2

    simulate(story, {}, watchers=(probe,))


def test_a_window_is_the_last_minute() -> None:
    probe = Probe("ticker", lambda: 1, interval=5)

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(600)
        window = daemon.watch.windows["ticker"]
        assert 12 <= len(window.samples) <= 13

    simulate(story, {}, watchers=(probe,))


def test_windows_are_filled_again_after_a_restart() -> None:
    probe = Probe("ticker", lambda: 1, interval=5)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(600)
        await world.crash()
        daemon = await world.start()
        assert len(daemon.watch.windows["ticker"].samples) >= 11

    simulate(story, {}, watchers=(probe,))


def test_a_threshold_that_is_crossed_becomes_an_effect_at_the_next_sample() -> None:
    values = iter([0.1, 0.2, 0.95, *[0.95] * 100])
    probe = Probe("load", lambda: next(values), interval=5, threshold=0.9)

    async def guard(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        verdict = await inner(prev, curr)
        seen = curr.window("load").values("value")
        if seen and seen[-1] > 0.9:
            return verdict.plus(Effect(action="note", key="load", samples=curr.samples("load")))
        return verdict

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10.02)
        (wish,) = world.events("effect")
        assert (wish.mono - probe.looks[2] * 1e6) <= 20_000

    simulate(story, {"daemon": {"tick_ms": 60_000}}, watchers=(probe,), rules=(guard,))


def test_samples_of_a_watcher_are_kept_with_its_key() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(19)
        kept: list[Mapping[str, Any]] = [
            sample.data for sample in await world.vitals.recent(0) if sample.key == "steady"
        ]
        assert kept == [{"value": 7}] * 4

    simulate(story, {}, watchers=(Probe("steady", lambda: 7),))
