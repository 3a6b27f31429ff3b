"""What follows from answers of an LLM endpoint."""

from typing import Any

import pytest

from pulse_core.llm.endpoint import LlmHistory, LlmProbe, check_status, conclude, state_of
from pulse_core.llm.settings import LlmSettings
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.conditions import Condition

URL = "http://127.0.0.1:4000/health"
GOOD = ProbeResult(took_ms=10, status=200)
DEAD = ProbeResult(Trouble.STALLED, "it took the connection, but did not answer within 10 s")
EXPIRED = ProbeResult(Trouble.TLS_EXPIRED, "its certificate has expired")
UNASKED = ProbeResult(Trouble.UNASKED, "the process that asks died")
FIRST = Moment(5, "boot", 5)


def said(answers: list[ProbeResult], state: str = "", excuse: str = "", **settings: Any) -> list[Payload]:
    """The events that follow from these answers, one after the other, while a condition stands (or not)."""
    llm = LlmSettings(url=URL, **settings)
    stands = Condition(FIRST, state, FIRST, "it was so") if state else None
    trail, found = LlmHistory(), []
    for second, answer in enumerate(answers):
        look = LlmProbe(llm, check_status(answer), Moment(second, "boot", second), trail, stands, excuse)
        drafts, trail = conclude(look)
        found += [draft.payload for draft in drafts]
        assert all(draft.subject == f"llm:{URL}" for draft in drafts)
    return found


def test_one_failure_or_two_prove_nothing() -> None:
    assert said([DEAD, DEAD, GOOD, DEAD, DEAD]) == []


def test_failures_in_a_row_are_told_with_what_was_seen() -> None:
    (raised,) = said([DEAD, DEAD, DEAD])
    assert raised == ConditionRaised(
        evidence="it took the connection, but did not answer within 10 s; 3 questions in a row failed",
        state="down",
    )


def test_it_begins_with_the_first_failure_in_a_row() -> None:
    (raised,) = said([DEAD, GOOD, DEAD, DEAD, DEAD])
    assert isinstance(raised, ConditionRaised)
    assert raised.failing == 2
    (raised,) = said([EXPIRED, EXPIRED, EXPIRED], "down")
    assert isinstance(raised, ConditionRaised)
    assert raised.failing == 0


def test_as_many_as_the_settings_want() -> None:
    assert said([DEAD] * 4, evidence=5) == []
    assert len(said([DEAD], evidence=1)) == 1


def test_what_stands_is_not_told_again() -> None:
    assert said([DEAD] * 9, "down") == []


def test_it_is_well_after_as_many_good_answers() -> None:
    assert said([GOOD, GOOD, DEAD, GOOD, GOOD], "down") == []
    (cleared,) = said([DEAD, GOOD, GOOD, GOOD], "down")
    assert isinstance(cleared, ConditionCleared)
    assert cleared.evidence == "it answers, 3 questions in a row"


def test_its_end_says_when_it_was_last_seen_wrong_by_an_answer_that_counts() -> None:
    (cleared,) = said([EXPIRED, GOOD, EXPIRED, GOOD, GOOD, GOOD], "tls")
    assert isinstance(cleared, ConditionCleared)
    assert cleared.wrong == 2
    (cleared,) = said([GOOD, GOOD, GOOD], "tls")  # as nobody knows who has only just begun to ask
    assert isinstance(cleared, ConditionCleared)
    assert cleared.wrong == 0


def test_an_excused_failure_counts_for_nothing_and_ends_the_row() -> None:
    assert said([DEAD] * 9, excuse="litellm is not up") == []


def test_a_good_answer_needs_no_excuse() -> None:
    assert len(said([GOOD] * 3, "down", excuse="litellm was started")) == 1


def test_a_question_that_was_not_put_counts_for_nothing_and_leaves_the_row_as_it_is() -> None:
    assert said([DEAD, DEAD, UNASKED, UNASKED]) == []
    assert len(said([DEAD, DEAD, UNASKED, DEAD])) == 1
    assert len(said([GOOD, GOOD, UNASKED, GOOD], "down")) == 1


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ProbeResult(status=200), ""),
        (ProbeResult(status=204), ""),
        (ProbeResult(status=307), "refuses"),
        (ProbeResult(status=401), "refuses"),
        (ProbeResult(status=429), "refuses"),
        (ProbeResult(status=500), "down"),
        (ProbeResult(status=503), "down"),
        (DEAD, "down"),
        (ProbeResult(Trouble.REFUSED), "down"),
        (ProbeResult(Trouble.ENDLESS), "down"),
        (ProbeResult(Trouble.CLOSED), "down"),
        (EXPIRED, "tls"),
        (ProbeResult(Trouble.TLS_UNTRUSTED), "tls"),
        (ProbeResult(Trouble.UNRESOLVED), "unreachable"),
        (ProbeResult(Trouble.UNREACHABLE), "unreachable"),
    ],
)
def test_the_state_says_whether_a_restart_may_help(answer: ProbeResult, state: str) -> None:
    assert state_of(check_status(answer), LlmSettings(url=URL)) == state


def test_it_is_down_only_if_every_failure_says_so() -> None:
    (raised,) = said([DEAD, EXPIRED, DEAD])
    assert isinstance(raised, ConditionRaised)
    assert raised.state == "tls"
    states = [
        one.state
        for one in said([DEAD, EXPIRED, DEAD, DEAD, DEAD], "tls")
        if isinstance(one, ConditionRaised)
    ]
    assert states == ["down"]
