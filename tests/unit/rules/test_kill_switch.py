"""`kill_switch`: nothing is done while Pulse is paused, and it is said what was held back."""

from pulse_core.model.kinds import Effect, Paused, Resumed
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.kill_switch import kill_switch
from pulse_core.testing import Story, given


async def busy(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Something inside that wishes two things, and to be asked again soon."""
    verdict = (await inner(prev, curr)).within(5_000).noting("inside")
    return verdict.plus(Effect(action="note", key="one"), Effect(action="notify", key="two"))


async def idle(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).noting("nothing to do")


def paused(story: Story) -> Story:
    story.event(Paused(why="moving"), actor="ada")
    return story


def notes(story: Story) -> tuple[str, ...]:
    return story.layers[-1].notes


def test_while_paused_every_effect_is_held_back_and_counted() -> None:
    story = paused(given(kill_switch, busy))
    story.tick()
    story.expect_nothing()
    assert notes(story) == ("paused by ada: held back 2 effects",)
    assert story.verdict.tick_ms == 5_000


def test_with_nothing_to_hold_back_nothing_is_said() -> None:
    story = paused(given(kill_switch, idle))
    story.tick()
    assert notes(story) == ()
    assert story.layers[-1].outcome == "passed"


def test_what_is_not_paused_passes() -> None:
    story = given(kill_switch, busy)
    story.tick()
    assert [effect.key for effect in story.emitted] == ["one", "two"]
    assert notes(story) == ()


def test_resumed_is_not_paused() -> None:
    story = paused(given(kill_switch, busy))
    story.event(Resumed(), actor="ada")
    story.tick()
    assert len(story.emitted) == 2


async def mends(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Something of survival inside that answers a condition one tick later."""
    verdict = await inner(prev, curr)
    if "disk:/" not in prev.conditions.raised:
        return verdict
    return verdict.plus(
        Effect(action="clean-paths", key="c", params={"for_condition": "disk:/"}, survival=True)
    )


def test_what_no_pause_had_held_back_says_nothing_of_one() -> None:
    story = given(kill_switch, mends)
    story.raised("disk:/")
    story.tick()
    assert story.expect("clean-paths").reason == ""


def test_what_a_pause_had_held_back_says_so() -> None:
    story = paused(given(kill_switch, mends))
    story.raised("disk:/")
    story.tick()
    story.expect_nothing()
    story.after("1m").event(Resumed(), actor="bob")
    story.tick()
    assert story.expect("clean-paths").reason == "; held back until now: Pulse was paused by ada"
