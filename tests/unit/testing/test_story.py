"""The harness for rule authors: what it lets through, and what it says when an expectation fails."""

import asyncio
from typing import Any

import pytest

from pulse_core import Event, Projection
from pulse_core.composition import SURVIVAL
from pulse_core.model.errors import Refused
from pulse_core.model.kinds import Effect, ProcessDied, ProcessUp
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.testing import Story, given

GATEWAY = {"process": [{"name": "gateway", "start": ["gateway"], "restart": {"backoff": "10s"}}]}
UP = ProcessUp(pid=7, started=70, evidence="there")
DIED = ProcessDied(pid=7, evidence="gone", healthy=True)


async def warm(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Wishes a note while the newest temperature is over fifty."""
    verdict = await inner(prev, curr)
    values = curr.window("heat").values("degrees")
    if not values or values[-1] <= 50:
        return verdict.noting("cool enough")
    return verdict.plus(Effect(action="note", key="hot", reason="it is hot", params={"degrees": values[-1]}))


async def waits(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Does what no rule may."""
    await asyncio.sleep(0)
    return await inner(prev, curr)


def test_a_rule_answers_what_was_sensed() -> None:
    story = given(warm).sample("heat", degrees=60)
    story.tick()
    effect = story.expect("note", key="hot", degrees=60)
    assert (effect.rule, effect.tick) == ("warm", 1)


def test_an_open_key_is_not_emitted_again_until_it_is_settled() -> None:
    story = given(warm).sample("heat", degrees=60)
    story.tick()
    story.tick()
    story.expect_nothing()
    story.acked("hot")
    story.tick()
    story.expect_nothing()  # it was settled a moment ago
    story.after("30s").tick()
    story.expect("note")


def test_what_people_were_told_is_not_emitted_again() -> None:
    async def telling(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        params = {"title": "x", "text": "x"}
        return (await inner(prev, curr)).plus(Effect(action="notify", key="notify:x", params=params))

    story = given(telling, settings={"notify": {"remind": "4h"}})
    story.tick()
    story.acked("notify:x")
    assert story.ticks(every="1h", times=3) == []
    assert len(story.ticks(every="1h", times=1)) == 1


def test_a_note_says_why_nothing_was_done() -> None:
    story = given(warm).sample("heat", degrees=20)
    story.tick()
    story.expect_nothing()
    assert story.expect_note("cool") == "cool enough"


def test_a_window_forgets_after_a_minute() -> None:
    story = given(warm).sample("heat", degrees=60).after("61s").sample("heat", degrees=1)
    assert story.snapshot.window("heat").values("degrees") == (1,)


def dead_twice() -> Story:
    story = given(*SURVIVAL, settings=GATEWAY)
    story.event(UP, "gateway")
    story.event(DIED, "gateway")
    story.tick()
    story.expect("restart-process", key="restart-process:gateway")
    story.acked("restart-process:gateway", pid=8, started=80)
    story.event(ProcessUp(pid=8, started=80, evidence="there"), "gateway")
    story.event(ProcessDied(pid=8, evidence="gone", healthy=False), "gateway")
    return story


@pytest.mark.parametrize("between", [Story.tick, Story.restart, Story.reboot])
def test_the_survival_rules_live_in_it_and_keep_their_patience_over_restarts(between: object) -> None:
    story = dead_twice()
    assert callable(between)
    between(story)
    story.after("8s").tick()
    story.expect_nothing("restart-process")
    story.after("2s").tick()
    story.expect("restart-process")


def test_a_reboot_begins_another_boot() -> None:
    story = given()
    before = story.now
    story.reboot()
    assert story.now.boot != before.boot
    assert story.now.mono < before.mono < story.now.since(before) + before.mono


@pytest.mark.parametrize(
    ("expectation", "words"),
    [
        (lambda story: story.expect("note", key="cold"), "expected note cold; the tick emitted: hot (it is hot)"),
        (lambda story: story.expect("note", degrees=1), "expected note degrees=1"),
        (lambda story: story.expect_nothing(), "expected no effect, but 'hot' came"),
        (lambda story: story.expect_note("x"), "no note says 'x'"),
        (lambda story: story.acked("cold"), "no effect 'cold' is open; open are ['hot']"),
    ],
)  # fmt: skip
def test_a_wrong_expectation_says_what_came_instead(expectation: object, words: str) -> None:
    story = given(warm).sample("heat", degrees=60)
    story.tick()
    assert callable(expectation)
    with pytest.raises(AssertionError) as failure:
        expectation(story)
    assert words in str(failure.value)


def test_a_rule_that_waits_for_the_world_is_told_so() -> None:
    with pytest.raises(AssertionError, match="may await nothing but inner"):
        given(waits).tick()


async def _raises(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    raise ValueError("no")


def test_a_rule_that_raises_fails_its_test() -> None:
    with pytest.raises(AssertionError, match="the rule _raises raised ValueError: no"):
        given(_raises).tick()


def test_own_projections_are_found_in_the_snapshot_as_json_has_them() -> None:
    def counted(state: Any, event: Event) -> Any:
        return {**state, event.subject: state.get(event.subject, 0) + 1}

    deaths = Projection(start={}, step=counted, kinds=frozenset({"process-died"}))
    story = given(projections={"deaths": deaths})
    story.happened("process-died", "gateway", pid=7, evidence="gone", healthy=True)
    story.happened("paused")
    assert story.snapshot.own == {"deaths": {"gateway": 1}}


def test_what_a_kind_does_not_say_cannot_have_happened() -> None:
    with pytest.raises(Refused, match="evidence"):
        given().happened("process-died", "gateway", pid=7)
