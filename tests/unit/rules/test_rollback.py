"""`panic_rollback` and `auto_rollback`: evidence, budget, verify and escalate, restarts in between."""

from collections.abc import Callable

import pytest

from pulse_core.execute.effect_tasks import objection
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    EffectFailed,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    RuleQuarantined,
)
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.rollback import auto_rollback, panic_rollback
from pulse_core.testing import Story, given

MINUTE = 60_000_000
BOUNDS = {"rollback": {"errors": 3, "breakdowns": 2, "failures": 3, "within": "10m", "patience": "2m"}}
KEY = "rollback-engine"


async def busy(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Something inside that always wishes something."""
    return (await inner(prev, curr)).plus(Effect(action="note", key=f"note-{curr.tick}", reason="inside"))


def promoted() -> Story:
    story = given(panic_rollback, auto_rollback, busy, settings=BOUNDS)
    story.event(EnginePromoted(previous="good", watch_us=5 * MINUTE), "bad")
    return story


def fail(story: Story, times: int, every: str = "10s") -> None:
    """So many survival actions are wished, and fail."""
    for number in range(times):
        story.after(every)
        key = f"try-{len(story.events)}-{number}"
        story.event(Effect(action="clean-paths", key=key, survival=True), key)
        story.failed(key)


def err(story: Story, times: int, every: str = "10s") -> None:
    for _ in range(times):
        story.after(every).event(ErrorReported(message="ValueError: no"), "rule:mine")


HARMS = {"failures": fail, "errors": err}


@pytest.mark.parametrize("harm", HARMS)
def test_harm_takes_the_promote_back_and_nobody_but_survival_speaks(harm: str) -> None:
    story = promoted()
    HARMS[harm](story, 3)
    story.tick()
    effect = story.expect(KEY, key=KEY, to="good", reject="bad")
    assert effect.survival
    story.expect_nothing("note")


@pytest.mark.parametrize("harm", HARMS)
def test_what_survival_wishes_in_the_same_tick_comes_before_the_rollback(harm: str) -> None:
    async def revives(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        wish = Effect(action="restart-process", key="restart-process:g", survival=True)
        return (await inner(prev, curr)).plus(wish).within(70)

    story = given(panic_rollback, auto_rollback, revives, busy, settings=BOUNDS)
    story.event(EnginePromoted(previous="good", watch_us=5 * MINUTE), "bad")
    HARMS[harm](story, 3)
    story.tick()
    assert [effect.key for effect in story.emitted] == ["restart-process:g", KEY]
    assert story.verdict.tick_ms == 70


@pytest.mark.parametrize("harm", HARMS)
def test_less_than_the_bound_is_no_harm(harm: str) -> None:
    story = promoted()
    HARMS[harm](story, 2)
    story.tick()
    story.expect_nothing(KEY)
    story.expect("note")


@pytest.mark.parametrize("harm", HARMS)
def test_without_a_promote_there_is_nothing_to_take_back(harm: str) -> None:
    story = given(panic_rollback, auto_rollback, settings=BOUNDS)
    HARMS[harm](story, 9)
    story.tick()
    story.expect_nothing()


@pytest.mark.parametrize("harm", HARMS)
def test_the_count_survives_a_restart(harm: str) -> None:
    story = promoted()
    HARMS[harm](story, 2)
    story.restart()
    HARMS[harm](story, 1)
    story.tick()
    story.expect(KEY)


@pytest.mark.parametrize(
    "params", [{"survival": True}, {"nested": {"survival": True}}, {"text": '"survival":true'}]
)
def test_what_an_effect_says_in_its_params_does_not_make_it_survivals(params: dict[str, Json]) -> None:
    story = promoted()
    for number in range(3):
        fail(story, 1)
        key = f"engines-{number}"
        story.event(Effect(action="feint", key=key, params=params, rule="mine", tick=1), key)
        story.acked(key)
    story.tick()
    story.expect(KEY, to="good", reject="bad")


def keep_failing(story: Story, times: int, target: str = "gone") -> None:
    """The same action of survival is wished again and again, and fails."""
    for _ in range(times):
        wish = Effect(action="restart-process", key=f"restart-process:{target}", survival=True)
        story.after("10s").event(wish, wish.key)
        story.failed(wish.key)


def test_failures_after_the_watch_are_not_held_against_a_commit_that_has_long_been_in_force() -> None:
    story = promoted().after("30d")
    keep_failing(story, 9)
    story.tick()
    story.expect_nothing(KEY)
    story.expect("note")


def test_what_failed_before_the_promote_already_is_not_its_fault_until_it_has_worked() -> None:
    story = promoted().after("30d")
    keep_failing(story, 3)
    story.event(EnginePromoted(previous="bad", watch_us=5 * MINUTE), "next")
    keep_failing(story, 9)
    story.tick()
    story.expect_nothing(KEY)
    fail(story, 2)
    story.restart().tick()
    story.expect_nothing(KEY)
    key = "restart-process:gone"
    story.event(Effect(action="restart-process", key=key, survival=True), key)
    story.acked(key)
    keep_failing(story, 3)
    story.tick()
    story.expect(KEY, reject="next")


def test_what_began_to_fail_after_the_promote_takes_it_back_whatever_failed_before() -> None:
    story = promoted().after("30d")
    keep_failing(story, 3)
    story.event(EnginePromoted(previous="bad", watch_us=5 * MINUTE), "next")
    keep_failing(story, 2)
    keep_failing(story, 3, "gateway")
    story.tick()
    story.expect(KEY, reject="next")


def test_a_success_in_between_resets_the_failures() -> None:
    story = promoted()
    fail(story, 2)
    story.event(Effect(action="clean-paths", key="well", survival=True), "well")
    story.acked("well")
    fail(story, 2)
    story.tick()
    story.expect_nothing(KEY)


def test_programs_that_the_machine_cannot_start_are_no_panic_and_no_success() -> None:
    story = promoted()
    fail(story, 2)
    for _ in range(9):
        wish = story.event(Effect(action="restart-process", key="restart-process:g", survival=True), "g")
        story.event(EffectFailed(error="there is no such program in PATH", not_startable=True), wish.id)
    story.tick()
    story.expect_nothing(KEY)
    fail(story, 1)
    story.tick()
    story.expect(KEY)


@pytest.mark.parametrize(
    ("harm", "given_up"), [("failures", "survival's actions work again in the meantime"), ("errors", None)]
)
def test_a_rollback_for_failures_is_given_up_when_an_action_works_again(
    harm: str, given_up: str | None
) -> None:
    story = promoted()
    HARMS[harm](story, 3)
    story.tick()
    wish = story.expect(KEY)

    def why() -> str | None:
        (open_,) = [one for one in story.snapshot.effects.open.values() if one.wish.key == wish.key]
        return objection(open_, story.snapshot.state, story.now)

    assert why() is None
    story.event(Effect(action="clean-paths", key="well", survival=True), "well")
    story.acked("well")
    assert why() == given_up
    assert (story.snapshot.engine.asked is None) is (given_up is not None)


def test_failures_that_lie_far_apart_are_no_panic() -> None:
    story = promoted()
    fail(story, 6, every="6m")
    story.tick()
    story.expect_nothing(KEY)


def test_notices_that_fail_and_users_effects_that_fail_are_no_panic() -> None:
    story = promoted()
    for number in range(5):
        story.event(Effect(action="notify", key=f"n{number}", survival=True), f"n{number}")
        story.failed(f"n{number}")
        story.event(Effect(action="run-command", key=f"c{number}"), f"c{number}")
        story.failed(f"c{number}")
    story.tick()
    story.expect_nothing(KEY)


def test_errors_after_the_watch_period_take_nothing_back() -> None:
    story = promoted().after("6m")
    err(story, 9)
    story.tick()
    story.expect_nothing(KEY)


def test_repeated_errors_count_as_often_as_they_came() -> None:
    story = promoted()
    story.event(ErrorReported(message="ValueError: no", repeats=2), "rule:mine")
    story.tick()
    story.expect(KEY)


def test_errors_of_others_than_rules_do_not_count() -> None:
    story = promoted()
    for _ in range(9):
        story.event(ErrorReported(message="no answer"), "watcher:network")
    story.tick()
    story.expect_nothing(KEY)


def break_down(
    story: Story, times: int, subject: str = "watcher:queue", commit: str = "bad", ended: bool = False
) -> None:
    for _ in range(times):
        error = ErrorReported(message="ValueError: no (watchers/queue.py:3)", commit=commit, ended=ended)
        story.after("10s").event(error, subject)


@pytest.mark.parametrize(
    ("subject", "ended"),
    [("watcher:queue", False), ("executor:beep", False), ("rule:mine", True), ("engine", True)],
)
def test_hands_that_break_down_and_hosts_that_end_take_the_promote_back(subject: str, ended: bool) -> None:
    story = promoted()
    break_down(story, 1, subject, ended=ended)
    story.tick()
    story.expect_nothing(KEY)
    story.expect_note("bad is watched: 0 of 3 errors, 1 of 2 breakdowns")
    break_down(story, 1, subject, ended=ended)
    story.tick()
    why = "its watchers, executors or hosts broke down at least 2 times while it was watched"
    story.expect(KEY, to="good", reject="bad", why=why)


def test_a_reboot_in_between_forgives_nothing() -> None:
    story = promoted()
    break_down(story, 1)
    story.reboot()
    break_down(story, 1)
    story.tick()
    story.expect(KEY)


def test_a_projection_that_raises_counts_as_a_rule_does() -> None:
    story = promoted()
    break_down(story, 2, "projection:mine")
    story.tick()
    story.expect_nothing(KEY)
    break_down(story, 1, "projection:mine")
    story.tick()
    story.expect(KEY)


def test_the_last_words_of_another_commit_do_not_count() -> None:
    story = promoted()
    break_down(story, 9, commit="good")
    break_down(story, 9, "rule:mine", commit="good")
    story.tick()
    story.expect_nothing(KEY)


def test_breakdowns_after_the_watch_period_take_nothing_back() -> None:
    story = promoted().after("6m")
    break_down(story, 9)
    story.tick()
    story.expect_nothing(KEY)


@pytest.mark.parametrize(("before", "excused"), [("1200s", True), ("1200001ms", False)])
def test_what_ailed_before_the_promote_is_not_its_fault(before: str, excused: bool) -> None:
    story = promoted()
    break_down(story, 1)
    story.after(before).event(EnginePromoted(previous="bad", watch_us=5 * MINUTE, changed=("a.py",)), "next")
    break_down(story, 3, commit="next")
    story.tick()
    assert bool([effect for effect in story.emitted if effect.key == KEY]) is not excused
    break_down(story, 2, "executor:beep", commit="next")
    story.tick()
    if excused:
        story.expect(KEY, reject="next")


def test_what_was_taken_back_for_an_ailing_hand_does_not_excuse_the_next_try() -> None:
    story = promoted()
    break_down(story, 2)
    story.tick()
    story.acked(KEY)
    story.event(EngineRolledBack(rejected="bad", why="errors"), "good")
    story.after("1m").event(EnginePromoted(previous="good", watch_us=5 * MINUTE), "again")
    break_down(story, 2, commit="again")
    story.tick()
    story.expect(KEY, reject="again")


def settled(story: Story) -> None:
    story.failed(KEY, "git says no")


@pytest.mark.parametrize("outcome", [settled, lambda story: None])
def test_a_rollback_that_does_not_come_is_told_once_and_called_off_when_it_does(
    outcome: Callable[[Story], None],
) -> None:
    story = promoted()
    err(story, 3)
    story.tick()
    outcome(story)
    story.after("1m").tick()
    story.expect_nothing("notify")
    story.expect_nothing(KEY)
    story.after("1m").tick()
    assert "upulse pause" in str(story.expect("notify").params["text"])
    story.after("1m").tick()
    story.expect_nothing("notify")
    story.acked("notify:engine:rollback")
    story.event(EngineRolledBack(rejected="bad", why="errors"), "good")
    story.tick()
    assert story.expect("notify", key="notify:engine:rollback").params["over"]


def test_people_are_told_once_that_a_commit_was_rolled_back_unless_a_person_asked_for_it() -> None:
    story = promoted()
    story.event(EngineRolledBack(rejected="bad", to="good", why="3 errors", asked_by="pulse"), "good")
    story.tick()
    notice = story.expect("notify", key="notify:engine:rolled-back", severity="error")
    assert str(notice.params["text"]).startswith("bad was rolled back: 3 errors. good is in force;")
    story.acked("notify:engine:rolled-back")
    story.ticks(every="5h", times=3)
    story.expect_nothing("notify")
    story.event(EnginePromoted(previous="good", watch_us=5 * MINUTE), "worse")
    story.event(EngineRolledBack(rejected="worse", to="good", why="I want it", asked_by="ada"), "good")
    story.tick()
    story.expect_nothing("notify")


def test_people_are_told_of_rules_that_are_passed_over_until_another_commit_is_in_force() -> None:
    story = promoted()
    story.event(RuleQuarantined(commit="bad", why="5 errors in a row"), "mine")
    story.tick()
    notice = story.expect("notify", key="notify:engine:quarantine", severity="warning")
    assert notice.params["title"] == "1 rule of the engine is passed over"
    story.acked("notify:engine:quarantine")
    story.event(EnginePromoted(previous="bad", watch_us=5 * MINUTE), "better")
    story.tick()
    story.expect("notify", key="notify:engine:quarantine", over=True)


def test_after_a_rollback_the_next_promote_begins_anew() -> None:
    story = promoted()
    err(story, 3)
    story.tick()
    story.acked(KEY)
    story.event(EngineRolledBack(rejected="bad", why="errors"), "good")
    story.after("1m").event(EnginePromoted(previous="good", watch_us=5 * MINUTE), "better")
    err(story, 2)
    story.tick()
    story.expect_nothing(KEY)
    err(story, 1)
    story.tick()
    story.expect(KEY, reject="better", to="good")


def test_why_it_waits_is_noted() -> None:
    story = promoted()
    err(story, 1)
    story.tick()
    story.expect_note("bad is watched: 1 of 3 errors")


@pytest.mark.parametrize("harm", HARMS)
def test_what_has_no_commit_before_it_cannot_be_taken_back(harm: str) -> None:
    story = given(panic_rollback, auto_rollback, settings=BOUNDS)
    story.event(EnginePromoted(previous="", watch_us=5 * MINUTE), "first")
    HARMS[harm](story, 9)
    story.tick()
    story.expect_nothing()


@pytest.mark.parametrize(("last", "counts"), [("5m", True), ("300001ms", False)])
def test_an_error_counts_until_the_very_end_of_the_watch(last: str, counts: bool) -> None:
    story = promoted()
    story.after(last)
    err(story, 3, every="0s")
    story.after("1h").tick()
    assert bool([effect for effect in story.emitted if effect.key == KEY]) is counts


@pytest.mark.parametrize(("last", "counts"), [("10m", True), ("600001ms", False)])
def test_a_failure_counts_for_as_long_as_is_set(last: str, counts: bool) -> None:
    story = promoted()
    fail(story, 3, every="0s")
    story.after(last).tick()
    assert bool([effect for effect in story.emitted if effect.key == KEY]) is counts


def test_how_the_watched_one_does_is_noted_until_the_watch_ends() -> None:
    story = promoted()
    story.after("5m").tick()
    story.expect_note("bad is watched: 0 of 3 errors")
    story.after("1ms").tick()
    assert not [note for layer in story.layers for note in layer.notes]


def test_after_the_wish_people_are_told_in_time_and_what_is_inside_speaks_again() -> None:
    story = promoted()
    err(story, 3)
    story.tick()
    assert [effect.key for effect in story.emitted] == [KEY]
    why = "its rules and projections raised at least 3 errors while it was watched"
    assert story.emitted[0].reason == f"bad is taken back: {why}"
    assert [(layer.outcome, layer.notes) for layer in story.layers] == [
        ("added", ()),
        ("dropped", (why,)),
        ("passed", ()),
    ]
    story.failed(KEY)
    story.after("1s").tick()
    story.expect("note")
    assert story.verdict.tick_ms == 120_000
    story.expect_note("its rules and projections raised at least 3 errors while it was watched")


def test_why_it_was_to_be_taken_back_is_noted_even_after_the_watch() -> None:
    story = promoted()
    err(story, 3)
    story.tick()
    story.after("1h").tick()
    story.expect_note("its rules and projections raised at least 3 errors while it was watched")


def test_before_any_wish_nobody_is_hurried() -> None:
    story = promoted()
    story.tick()
    assert story.verdict.tick_ms == 86_400_000


def test_a_panic_says_what_failed_and_is_noted_while_it_lasts() -> None:
    story = promoted()
    fail(story, 4)
    story.tick()
    why = "4 of survival's own actions failed in a row since bad was promoted"
    assert story.expect(KEY, why=why).reason == f"bad is taken back: {why}"
    story.expect_note(why)
    story.tick()
    story.expect_nothing(KEY)
    story.expect("note")
    story.expect_note(why)


def test_people_are_told_of_a_rollback_that_does_not_come_with_both_commits() -> None:
    story = promoted()
    err(story, 3)
    story.tick()
    story.after("119s").tick()
    story.expect_nothing("notify")
    story.after("1s").tick()
    notice = story.expect("notify", key="notify:engine:rollback", title="the engine could not be rolled back")
    assert str(notice.params["text"]).startswith("bad does harm and was to be replaced by good, but still is")
    assert notice.survival
    story.acked(notice.key)
    story.event(EngineRolledBack(rejected="bad", why="errors"), "good")
    story.tick()
    over = story.expect("notify", key=notice.key, title="resolved: the engine's rollback", over=True)
    assert over.params["text"] == "good is in force"
