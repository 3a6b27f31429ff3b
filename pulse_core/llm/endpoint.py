"""What the watcher and the rule of LLM endpoints share: names, states, and when a failure is excused."""

from pulse_core.llm.settings import LlmSettings
from pulse_core.model.durations import rough_duration
from pulse_core.model.moment import Moment
from pulse_core.projections import State
from pulse_core.rules.survival.process_status import restart_key
from pulse_core.settings import ProcessSettings, Settings

PREFIX = "llm:"
"""What the names of the conditions begin with; the URL follows."""

DOWN, REFUSES, TLS, UNREACHABLE = "down", "refuses", "tls", "unreachable"
"""States: no answer, or an error of its own; it answers, but with 3xx or 4xx; its certificate or TLS is at fault;
there is no way to it. Only in the first one may a restart help."""


def name_of(llm: LlmSettings) -> str:
    """The name of the endpoint's condition."""
    return f"{PREFIX}{llm.url}"


def process_of(llm: LlmSettings, settings: Settings) -> ProcessSettings | None:
    """The process that is restarted when the endpoint does not answer, if there is one."""
    return next((process for process in settings.process if process.name == llm.restart), None)


def process_started(llm: LlmSettings, state: State, now: Moment) -> Moment | None:
    """When its process was last started according to the log: found up, or a restart of it settled."""
    if llm.restart is None:
        return None
    known = (state.processes[llm.restart].up, state.effects.settled_at.get(restart_key(llm.restart)))
    return min((moment for moment in known if moment is not None), key=now.since, default=None)


def excuse_for(llm: LlmSettings, settings: Settings, state: State, now: Moment) -> str:
    """Why the endpoint need not answer at this moment; empty if it must."""
    if (process := process_of(llm, settings)) is None:
        return ""
    name, history = process.name, state.processes[process.name]
    if history.stop and history.stop.holds(now):
        return f"{name} is stopped by {history.stop.by}"
    if state.effects.by_key(restart_key(name)):
        return f"the restart of {name} is under way"
    if history.up is None:
        return f"{name} is not up"
    start = process_started(llm, state, now)
    if start is not None and (left := llm.grace - now.since(start)) > 0:
        return f"{name} was started, and has {rough_duration(left)} left to answer"
    return ""


def is_excused_failure(moment: Moment, llm: LlmSettings, state: State, now: Moment) -> bool:
    """Whether a failure at this moment does not count, since its process was started later, or not long before."""
    start = process_started(llm, state, now)
    return start is not None and now.since(moment) > now.since(start) - llm.grace
