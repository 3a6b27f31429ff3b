"""What was tried against a condition outlives the episode, so that a budget can be charged with it."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

from pulse_core.model.event import Event
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, Effect, EffectAcked
from pulse_core.model.payload import Payload
from pulse_core.projections.conditions import MEASURES, REMEMBERED, Conditions, after
from pulse_core.projections.notices import Notices
from pulse_core.projections.processes import Processes
from pulse_core.tasks.stats import AgentCapabilityStats
from tests.events import event

NAMED: Any = {"disk:/": None}
RAISED, CLEARED = ConditionRaised(evidence="no answer", state="down"), ConditionCleared(evidence="it answers")
WISH = Effect(action="restart-process", key="k", params={"for_condition": "llm:x"}, survival=True)


def told(*said: tuple[Payload, str]) -> Conditions:
    return after(
        Conditions(), [event(seq, payload, subject) for seq, (payload, subject) in enumerate(said, 1)]
    )


@pytest.mark.parametrize(
    "state", [Conditions(NAMED), Notices(NAMED), Processes(NAMED), AgentCapabilityStats(NAMED)]
)
def test_a_rule_may_ask_what_is_among_them_and_go_through_their_names(state: Iterable[str]) -> None:
    assert list(islice(state, 2)) == ["disk:/"]
    assert "disk:/" in state


def episode(seq: int, name: str = "llm:x", wishes: int = 1) -> list[Event]:
    """A condition that is raised, answered so often, and cleared."""
    wish = WISH.model_copy(update={"params": {"for_condition": name}})
    said: list[tuple[Payload, str]] = [(RAISED, name)]
    for number in range(wishes):
        said += [(wish, "k"), (EffectAcked(took_us=1), f"id-{seq + 1 + 2 * number}")]
    said.append((CLEARED, name))
    return [event(seq + offset, payload, subject) for offset, (payload, subject) in enumerate(said)]


def test_it_began_when_it_was_first_seen_wrong_and_was_raised_later() -> None:
    late = RAISED.model_copy(update={"failing": event(3, RAISED, "a").at})
    state = after(Conditions(), [event(seq, late, "a") for seq in (5, 7)])
    assert (one := state["a"])
    assert (one.since, one.began) == (event(5, RAISED, "a").moment, event(3, RAISED, "a").moment)
    assert one.changed == one.began


def test_what_was_tried_in_earlier_episodes_is_remembered() -> None:
    state = after(Conditions(), [*episode(1), *episode(5, wishes=2)])
    assert [moment.mono // 10**6 for moment in state.tried["llm:x"]] == [2, 6, 8]
    assert state["llm:x"] is None


def test_what_was_tried_last_is_kept_as_it_ended_until_another_episode_ends() -> None:
    state = after(Conditions(), [*episode(1, wishes=2), *episode(10)])
    (measure,) = state.last["llm:x"]
    assert (measure.action, measure.worked) == ("restart-process", True)
    assert after(state, episode(20, wishes=0)).last == {}


def test_only_the_newest_are_remembered() -> None:
    state = Conditions()
    for number in range(MEASURES + 5):
        state = after(state, episode(1 + 4 * number))
    assert len(state.tried["llm:x"]) == MEASURES
    assert state.tried["llm:x"][0].mono // 10**6 == 2 + 4 * 5


def test_what_was_answered_by_nothing_leaves_nothing() -> None:
    assert told((RAISED, "memory"), (CLEARED, "memory")).tried == {}


def test_it_goes_with_the_name_when_too_many_were_cleared_after_it() -> None:
    state = after(Conditions(), episode(1, "old"))
    for number in range(REMEMBERED):
        state = after(state, episode(10 + 4 * number, f"new-{number}", wishes=0))
    assert "old" not in state.cleared
    assert state.tried == {}
    assert state.last == {}


def test_what_ends_after_its_episode_is_not_taken_for_a_measure_of_the_next_one() -> None:
    again = WISH.model_copy(update={"key": "again"})
    state = told(
        (RAISED, "llm:x"), (WISH, "k"), (CLEARED, "llm:x"),
        (RAISED, "llm:x"), (again, "again"), (EffectAcked(took_us=1), "id-2"),
    )  # fmt: skip
    condition = state["llm:x"]
    assert condition is not None
    assert [measure.settled for measure in condition.measures] == [None]


@pytest.mark.parametrize(
    ("cleared", "is_unwatched"),
    [
        (ConditionCleared(evidence="it was taken out of the settings", unwatched=True), True),
        (
            ConditionCleared(evidence="it is not checked any more"),
            True,
        ),  # as logs of before the field have it
        (ConditionCleared(evidence="the queue does not grow any more"), False),
        (CLEARED, False),
    ],
)
def test_whether_anybody_still_looks_is_no_matter_of_how_the_evidence_ends(
    cleared: ConditionCleared, is_unwatched: bool
) -> None:
    state = told((RAISED, "check:x"), (cleared, "check:x"))
    assert state.unwatched == ({"check:x": cleared.evidence} if is_unwatched else {})


def test_what_others_than_survival_say_in_params_and_results_is_no_measure() -> None:
    theirs = WISH.model_copy(update={"survival": False, "action": "beep"})
    forged = EffectAcked(took_us=1, result={"bytes": ["no number"]})
    condition = told((RAISED, "llm:x"), (theirs, "k"), (forged, "id-2"))["llm:x"]
    assert condition is not None
    assert condition.measures == ()
