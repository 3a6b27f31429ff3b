"""Evaluates one probe of an LLM endpoint. Pure: the same answer and history give the same conclusion."""

from typing import NamedTuple

from pulse_core.llm.endpoint import DOWN, REFUSES, TLS, UNREACHABLE, name_of
from pulse_core.llm.settings import LlmSettings
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.ports import ProbeResult, Trouble
from pulse_core.projections import Condition

STATES = {
    Trouble.TLS_EXPIRED: TLS,
    Trouble.TLS_UNTRUSTED: TLS,
    Trouble.TLS: TLS,
    Trouble.UNRESOLVED: UNREACHABLE,
    Trouble.UNREACHABLE: UNREACHABLE,
}
"""The state for each trouble that a restart does not fix."""


class LlmHistory(NamedTuple):
    """Recent answers of an endpoint: counted failures in a row, the first of them, their states, and successes in a row."""

    failures: int = 0
    first: Moment | None = None
    states: tuple[str, ...] = ()
    successes: int = 0


class LlmProbe(NamedTuple):
    """One answer, when the probe was sent, the history before it, the raised condition, and why a failure is excused."""

    llm: LlmSettings
    answer: ProbeResult
    asked: Moment
    trail: LlmHistory
    stands: Condition | None
    excuse: str = ""


class LlmConclusion(NamedTuple):
    """Events that follow, and the history from now on."""

    drafts: tuple[Draft, ...] = ()
    trail: LlmHistory = LlmHistory()


def check_status(answer: ProbeResult) -> ProbeResult:
    """The answer, marked as trouble if its status is not 2xx."""
    if answer.trouble is None and answer.status is not None and not 200 <= answer.status < 300:
        return answer._replace(trouble=Trouble.STATUS, detail=f"it answered {answer.status}")
    return answer


def state_of(answer: ProbeResult) -> str:
    """The state that an answer in trouble shows."""
    if answer.trouble is Trouble.STATUS and answer.status is not None and answer.status < 500:
        return REFUSES
    return STATES.get(answer.trouble, DOWN) if answer.trouble else ""


def conclude(look: LlmProbe) -> LlmConclusion:
    """Conclude what follows: a change, once enough answers in a row agree on it. An excused failure does not count."""
    if look.answer.trouble is Trouble.UNASKED:
        return LlmConclusion(trail=look.trail)
    if look.answer.trouble is None:
        return _good(look)
    return LlmConclusion() if look.excuse else _bad(look)


def _good(look: LlmProbe) -> LlmConclusion:
    trail = LlmHistory(successes=look.trail.successes + 1)
    if look.stands is None or trail.successes < look.llm.evidence:
        return LlmConclusion(trail=trail)
    words = f"it answers, {_times(trail.successes)}"
    return LlmConclusion((Draft(ConditionCleared(evidence=words), subject=name_of(look.llm)),), trail)


def _bad(look: LlmProbe) -> LlmConclusion:
    before, needed = look.trail, look.llm.evidence
    states = (*before.states, state_of(look.answer))[-needed:]
    trail = LlmHistory(before.failures + 1, before.first or look.asked, states)
    if trail.failures < needed:
        return LlmConclusion(trail=trail)
    state = agreed_state(states)
    if look.stands is not None and look.stands.state == state:
        return LlmConclusion(trail=trail)
    words = f"{look.answer.detail}, {_times(trail.failures)}"
    return LlmConclusion(
        (Draft(ConditionRaised(evidence=words, state=state), subject=name_of(look.llm)),), trail
    )


def agreed_state(states: tuple[str, ...]) -> str:
    """The state that these failures show: down only if each of them does, or else the last one that a restart
    does not fix."""
    return next((state for state in reversed(states) if state != DOWN), DOWN)


def _times(count: int) -> str:
    return "1 question" if count == 1 else f"{count} questions in a row"
