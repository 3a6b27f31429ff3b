"""When a check is concluded to be bad, or well again: evidence, time, hysteresis, excuses."""

from collections.abc import Sequence
from typing import Any

import pytest

from pulse_core.checks.conclusions import (
    CheckHistory,
    Look,
    conclude,
    excuse_for,
    gauge_of,
    is_bad,
    is_outdated,
)
from pulse_core.checks.outcomes import CheckOutcome
from pulse_core.checks.settings import CHECKS, CheckSettings
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, Effect, ProcessStopRequested, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.projections.conditions import Condition, Conditions
from pulse_core.testing import Story, given

SECOND = 1_000_000
GOOD, BAD = CheckOutcome(0, "it is well"), CheckOutcome(1, "it is bad")
UNKNOWN = CheckOutcome(None, "nobody can look")
NAME = "check:it"


def at(seconds: float) -> Moment:
    return Moment(10**15 + round(seconds * SECOND), "boot", round(seconds * SECOND))


def number(value: float) -> CheckOutcome:
    return CheckOutcome(value, f"it is {value:g}", {"value": value}, is_measured=True)


class Checked:
    """Looks one after the other, with the condition as the log has it."""

    def __init__(self, **said: Any) -> None:
        source = {} if "vital" in said else {"command": ["true"]}
        self.check = CheckSettings.model_validate({"name": "it", **source, **said})
        self.history = CheckHistory()
        self.raised: dict[str, Condition] = {}
        self.payloads: list[ConditionRaised | ConditionCleared] = []

    def look(self, seconds: float, found: CheckOutcome, excuse: str = "", took: float = 0) -> str:
        """What is new: `+STATE`, `-`, or nothing."""
        now, conditions = at(seconds), Conditions(dict(self.raised))
        look = Look(self.check, found, at(seconds - took), self.history, conditions, now, excuse)
        drafts, self.history = conclude(look)
        for draft in drafts:
            assert draft.subject == NAME
            match draft.payload:
                case ConditionRaised(state=state, evidence=words) as payload:
                    self.raised[NAME] = Condition(now, state, now, words)
                    self.payloads.append(payload)
                    return f"+{state}"
                case ConditionCleared() as payload:
                    del self.raised[NAME]
                    self.payloads.append(payload)
                    return "-"
        return ""

    def looks(self, *found: CheckOutcome, every: float = 30) -> Sequence[str]:
        return [self.look(every * place, one) for place, one in enumerate(found)]


def test_one_bad_look_raises_it_and_one_good_look_clears_it() -> None:
    checked = Checked()
    assert checked.looks(GOOD, BAD, BAD, GOOD, GOOD, BAD) == ["", "+failing", "", "-", "", "+failing"]
    raised, cleared, _ = checked.payloads
    assert (raised.evidence, raised.value, cleared.evidence, cleared.value) == (
        "it is bad",
        None,
        "it is well",
        None,
    )
    assert isinstance(raised, ConditionRaised)
    assert raised.bound is None


def test_with_evidence_as_many_in_a_row_must_agree_on_either() -> None:
    checked = Checked(evidence=3)
    assert checked.looks(BAD, BAD, GOOD, BAD, BAD, BAD) == ["", "", "", "", "", "+failing"]
    assert checked.looks(GOOD, GOOD, BAD, GOOD, GOOD, GOOD) == ["", "", "", "", "", "-"]
    assert checked.payloads[0].evidence == "it is bad; 3 checks in a row failed"
    cleared = checked.payloads[1]
    assert isinstance(cleared, ConditionCleared)
    assert cleared.wrong == at(2 * 30).at  # the last bad look, whatever good ones it took to clear it
    checked = Checked()
    checked.looks(BAD, GOOD)
    excused = Checked()
    excused.look(0, BAD)
    excused.look(10, BAD, excuse="it was only just started")
    excused.look(20, GOOD)
    moments = [one.payloads[1].wrong for one in (checked, excused)]  # type: ignore[union-attr]  # both are cleared
    assert moments == [at(0).at, 0]


def test_one_bad_look_after_a_restart_is_remembered_though_it_takes_three_for_another_one() -> None:
    """What was bad once its process had its grace, did not become well by that restart."""
    checked = Checked(evidence=3)
    checked.looks(BAD, BAD, BAD)
    checked.look(70, BAD, excuse="it was only just started")
    checked.look(80, BAD)
    assert [checked.look(seconds, GOOD) for seconds in (90, 100, 110)] == ["", "", "-"]
    cleared = checked.payloads[1]
    assert isinstance(cleared, ConditionCleared)
    assert cleared.wrong == at(80).at


@pytest.mark.parametrize("evidence", [1, 2])
def test_it_is_wrong_from_when_the_first_bad_look_began(evidence: int) -> None:
    checked = Checked(evidence=evidence)
    for place in range(2):
        checked.look(20 + 30 * place, BAD, took=10)
    raised = checked.payloads[0]
    assert isinstance(raised, ConditionRaised)
    assert raised.failing == at(10).at  # as a process that does not answer


@pytest.mark.parametrize("evidence", [1, 2])
def test_a_look_tells_nothing_of_what_came_after_it_began(evidence: int) -> None:
    checked = Checked(evidence=evidence)
    for place in range(3):
        checked.look(20 + 30 * place, BAD, took=10)
    for place in range(3, 5):
        checked.look(30 * place, GOOD)
    cleared = checked.payloads[1]
    assert isinstance(cleared, ConditionCleared)
    assert cleared.wrong == at(10 + 30 * 2).at


def test_the_words_say_how_often_where_once_is_not_enough() -> None:
    once, twice = Checked(), Checked(evidence=2)
    assert (once.looks(BAD), twice.looks(BAD, BAD)) == (["+failing"], ["", "+failing"])
    assert [one.payloads[0].evidence for one in (once, twice)] == [
        "it is bad",
        "it is bad; 2 checks in a row failed",
    ]
    twice.look(90, BAD)
    assert (twice.history.bad, twice.history.first) == (3, at(0))


def test_with_a_time_it_must_be_bad_for_as_long() -> None:
    checked = Checked(**{"for": "1m"})
    assert checked.looks(BAD, BAD, GOOD, BAD, BAD, BAD) == ["", "", "", "", "", "+failing"]
    assert checked.payloads[0].evidence == "it is bad, for at least 1 min"


@pytest.mark.parametrize(
    ("said", "since"),
    [({}, None), ({"evidence": 3}, 90), ({"for": "1m"}, 90), ({"evidence": 2, "for": "1m"}, 90)],
)
def test_what_is_raised_says_since_when_it_is_bad(said: Any, since: float | None) -> None:
    checked = Checked(**said)
    checked.looks(BAD, GOOD, GOOD, BAD, BAD, BAD) if said else checked.looks(BAD)
    raised = checked.payloads[-1]
    assert isinstance(raised, ConditionRaised)
    assert raised.failing == (0 if since is None else at(since).at)


def test_both_must_hold() -> None:
    assert Checked(evidence=2, **{"for": "2m"}).looks(BAD, BAD, BAD, BAD, BAD) == ["", "", "", "", "+failing"]
    assert Checked(evidence=4, **{"for": "30s"}).looks(BAD, BAD, BAD, BAD) == ["", "", "", "+failing"]


def test_a_number_is_well_again_beyond_its_other_bound() -> None:
    checked = Checked(vital="a.b", over=10, clear=8)
    found = [number(value) for value in (9, 10, 9, 8, 7, 9, 12)]
    assert checked.looks(*found) == ["", "+high", "", "", "-", "", "+high"]
    raised, cleared, _ = checked.payloads
    assert isinstance(raised, ConditionRaised)
    assert (raised.value, raised.bound, cleared.value) == (10, 10, 7)
    low = Checked(vital="a.b", under=2, clear=3)
    assert low.looks(*(number(value) for value in (3, 2, 2.5, 3, 4))) == ["", "+low", "", "", "-"]


def test_a_number_must_be_beyond_its_other_bound_as_often_as_evidence_says() -> None:
    checked = Checked(vital="a.b", over=10, clear=8, evidence=2)
    found = [number(value) for value in (10, 10, 9, 9, 7, 9, 7, 7)]
    assert checked.looks(*found) == ["", "+high", "", "", "", "", "", "-"]


def test_what_is_not_there_has_no_number_that_could_be_compared() -> None:
    check = CheckSettings.model_validate({"name": "it", "file": "/x", "age_over": "1h"})
    assert is_bad(check, CheckOutcome(1, "/x is not there"), Conditions())
    assert gauge_of(check, CheckOutcome(1, "/x is not there")).state == "failing"
    assert gauge_of(check, CheckOutcome(3_600, "old", is_measured=True)).state == "high"


def test_what_nobody_can_look_at_is_told_after_a_minute_and_is_otherwise_wrong_when_it_is_bad() -> None:
    checked = Checked()
    assert checked.looks(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN) == ["", "", "+unknown", ""]
    (raised,) = checked.payloads
    assert isinstance(raised, ConditionRaised)
    assert raised.failing == at(0).at  # nobody could look from then on, not since that is told
    assert [checked.look(120, BAD), checked.look(150, GOOD)] == ["+failing", "-"]
    assert checked.looks(UNKNOWN, GOOD, UNKNOWN, UNKNOWN) == ["", "", "", ""]


def test_looks_that_could_not_be_made_are_not_counted_as_checks_that_failed() -> None:
    checked = Checked(evidence=2)
    assert checked.looks(*[UNKNOWN] * 32, every=2)[-2:] == ["", "+unknown"]
    assert checked.payloads[0].evidence == "nobody can look"


def test_what_nobody_can_look_at_for_a_moment_ends_nothing() -> None:
    checked = Checked(evidence=2)
    assert checked.looks(BAD, UNKNOWN, BAD) == ["", "", "+failing"]
    assert checked.looks(UNKNOWN, BAD) == ["", ""]


def test_looks_with_an_excuse_count_for_nothing() -> None:
    checked = Checked(evidence=2)
    checked.look(0, BAD)
    assert checked.history.first == at(0)
    assert checked.look(30, BAD, "it is being restarted") == ""
    assert checked.looks(BAD, BAD) == ["", "+failing"]
    assert checked.look(90, GOOD, "it is being restarted") == ""
    assert checked.history == CheckHistory()
    assert [checked.look(120, GOOD), checked.look(150, GOOD)] == ["", "-"]


def test_a_time_over_the_bound_outlives_looks_that_are_late_but_no_long_gap() -> None:
    near, far = Checked(**{"for": "3m"}), Checked(**{"for": "3m"})
    assert [near.look(0, BAD), near.look(140, BAD), near.look(200, BAD)] == ["", "", "+failing"]
    assert [far.look(0, BAD), far.look(141, BAD), far.look(200, BAD)] == ["", "", ""]


@pytest.mark.parametrize(
    ("found", "stands", "bad"), [(GOOD, True, False), (BAD, False, True), (UNKNOWN, True, None)]
)
def test_whether_it_is_bad(found: CheckOutcome, stands: bool, bad: bool | None) -> None:
    raised = {NAME: Condition(at(0), "", at(0), "")} if stands else {}
    assert is_bad(Checked().check, found, Conditions(raised)) is bad


def test_a_number_between_its_bounds_is_bad_as_long_as_it_was() -> None:
    check = Checked(vital="a.b", over=10, clear=8).check
    stands = Conditions({NAME: Condition(at(0), "", at(0), "")})
    assert [is_bad(check, number(9), conditions) for conditions in (Conditions(), stands)] == [False, True]


# Excuses


def a_story(**said: Any) -> Story:
    checks = [{"name": "it", "command": ["true"], **said}]
    return given(settings={"process": [{"name": "gateway", "start": ["gateway"]}], "check": checks})


def excuse(story: Story) -> str:
    return excuse_for(CHECKS.of(story.settings)[0], story.snapshot.state, story.now)


def test_a_check_that_restarts_a_process_is_excused_while_that_can_not_be_well() -> None:
    story = a_story(then="restart gateway", grace="1m")
    assert excuse(story) == "gateway is not up"
    story.event(ProcessUp(pid=7, started=360_000, evidence="there"), "gateway")
    assert excuse(story) == "gateway was started, and has 1 min left to answer"
    story.after("2m")
    assert excuse(story) == ""
    story.event(ProcessStopRequested(expires_us=600 * SECOND), "gateway", actor="ann")
    assert excuse(story) == "gateway is stopped by ann"


def test_a_check_that_only_tells_has_no_excuse() -> None:
    assert excuse(a_story()) == ""


def test_what_was_seen_before_something_was_done_counts_for_nothing() -> None:
    story = a_story(then="run-command", run=["true"])
    key, (check,) = "run-command:check:it", CHECKS.of(story.settings)
    before = story.now
    story.after("1m").event(Effect(action="run-command", key=key, params={"argv": ["true"]}), key)
    assert excuse(story) == "the command that mends it is running"
    assert not is_outdated(before, check, story.snapshot.state, story.now)
    done = story.after("1m").acked(key).moment
    assert excuse(story) == ""
    after = story.after("1s").now
    state = story.after("1s").snapshot.state
    assert [is_outdated(moment, check, state, story.now) for moment in (before, done, after)] == [
        True,
        True,
        False,
    ]
