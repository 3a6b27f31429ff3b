"""An LLM endpoint: when a failure is excused, and what one answer of it means. Pure."""

from typing import NamedTuple

from pulse_core.llm.settings import LIVE, LlmSettings, live_url, role_of
from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import State
from pulse_core.rules.survival.restart_plan import excuse_of, last_started
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

PREFIX = "llm:"
"""What the names of the conditions begin with; the URL follows."""

DOWN, REFUSES, TLS, UNREACHABLE = "down", "refuses", "tls", "unreachable"
NOT_READY, PROVIDER = "not-ready", "provider"
"""States: no answer, or an error of its own; it answers, but with 3xx or 4xx; its certificate or TLS is at fault;
there is no way to it; a gateway that is there itself can't do all of its work; a provider behind it fails. Only in the
first one may a restart help."""

STATES = {
    Trouble.TLS_EXPIRED: TLS,
    Trouble.TLS_UNTRUSTED: TLS,
    Trouble.TLS: TLS,
    Trouble.UNRESOLVED: UNREACHABLE,
    Trouble.UNREACHABLE: UNREACHABLE,
}
"""The state for each trouble that a restart does not fix."""


def name_of(llm: LlmSettings) -> str:
    """The name of the endpoint's condition."""
    return f"{PREFIX}{llm.url}"


def process_of(llm: LlmSettings, settings: Settings) -> ProcessSettings | None:
    """The process that is restarted when the endpoint does not answer, if there is one."""
    return next((process for process in settings.process if process.name == llm.restart), None)


def process_started(llm: LlmSettings, state: State, now: Moment) -> Moment | None:
    """When its process was last started according to the log: found up, or a restart of it settled."""
    return None if llm.restart is None else last_started(llm.restart, state, now)


def excuse_for(llm: LlmSettings, settings: Settings, state: State, now: Moment) -> str:
    """Why the endpoint need not answer at this moment; empty if it must."""
    if (live := live_url(llm)) != llm.url and state.conditions[f"{PREFIX}{live}"]:
        return f"{live} gives no good answer"
    process = process_of(llm, settings)
    return excuse_of(process.name, llm.grace, state, now) if process else ""


def is_excused_failure(moment: Moment, llm: LlmSettings, state: State, now: Moment) -> bool:
    """Whether a failure at this moment does not count, since its process was started later, or not long before."""
    start = process_started(llm, state, now)
    return start is not None and now.since(moment) > now.since(start) - llm.grace


class LlmHistory(NamedTuple):
    """Recent answers of an endpoint: counted failures in a row, the first of them, their states, and successes in a row.

    seen: when the last failure that counted while its condition stood was asked for.
    """

    failures: int = 0
    first: Moment | None = None
    states: tuple[str, ...] = ()
    successes: int = 0
    seen: Moment | None = None


class LlmProbe(NamedTuple):
    """One answer, when the probe was sent, the history before it, the raised condition, and why a failure is excused."""

    llm: LlmSettings
    answer: ProbeResult
    asked: Moment
    trail: LlmHistory
    stands: Condition | None
    excuse: str = ""


def check_status(answer: ProbeResult) -> ProbeResult:
    """The answer, marked as trouble if its status is not 2xx."""
    if answer.trouble is None and answer.status is not None and not 200 <= answer.status < 300:
        return answer._replace(trouble=Trouble.STATUS, detail=f"it answered {answer.status}")
    return answer


def state_of(answer: ProbeResult, llm: LlmSettings) -> str:
    """The state that an answer in trouble shows."""
    if answer.trouble is Trouble.STATUS and answer.status is not None and answer.status < 500:
        return REFUSES
    if answer.trouble and role_of(llm) != LIVE:
        return PROVIDER if answer.trouble is Trouble.BODY else NOT_READY
    return STATES.get(answer.trouble, DOWN) if answer.trouble else ""


def conclude(look: LlmProbe) -> tuple[tuple[Draft, ...], LlmHistory]:
    """The events that follow, once enough answers in a row agree, and the history from now on.

    An excused failure does not count.
    """
    if look.answer.trouble is Trouble.UNASKED:
        return (), look.trail
    if look.answer.trouble is None:
        return _good(look)
    return ((), LlmHistory()) if look.excuse else _bad(look)


def _good(look: LlmProbe) -> tuple[tuple[Draft, ...], LlmHistory]:
    seen = look.trail.seen
    trail = LlmHistory(successes=look.trail.successes + 1, seen=seen)
    if look.stands is None or trail.successes < look.llm.evidence:
        return (), trail
    answers = f"it answers, {times(trail.successes)}"
    cleared = ConditionCleared(evidence=answers, wrong=seen.at if seen else 0)
    return (Draft(cleared, subject=name_of(look.llm)),), trail


def _bad(look: LlmProbe) -> tuple[tuple[Draft, ...], LlmHistory]:
    before, needed = look.trail, look.llm.evidence
    states = (*before.states, state_of(look.answer, look.llm))[-needed:]
    stands = look.stands is not None or before.failures + 1 >= needed
    seen = look.asked if stands else None
    trail = LlmHistory(before.failures + 1, before.first or look.asked, states, seen=seen)
    # Down only if each of them shows that, or else the last state that a restart does not fix.
    state = next((state for state in reversed(states) if state != DOWN), DOWN)
    if trail.failures < needed or (look.stands is not None and look.stands.state == state):
        return (), trail
    words, first = f"{look.answer.detail}; {times(trail.failures)} failed", trail.first
    raised = ConditionRaised(
        evidence=words, state=state, failing=first.at if first and not look.stands else 0
    )
    return (Draft(raised, subject=name_of(look.llm)),), trail


def times(count: int) -> str:
    """So many questions, in words."""
    return "1 question" if count == 1 else f"{count} questions in a row"
