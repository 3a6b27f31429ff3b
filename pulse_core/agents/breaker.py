"""When an agent is set aside because it failed repeatedly, and for how long. Pure."""

from collections.abc import Mapping

from pulse_core.agents.projection import RUNS, AgentRuns
from pulse_core.agents.settings import AGENTS, GENERAL, AgentsSettings
from pulse_core.model.backoff import Backoff
from pulse_core.model.moment import Moment
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.tasks.stats import STATS, AgentStats


def failing_agents(state: State, settings: Settings, now: Moment) -> Mapping[str, int]:
    """The agents that are set aside or on trial, each with its failures in a row."""
    stats, resumed, general = state.of(STATS), state.of(RUNS).resumed, GENERAL.of(settings)
    names = (agent.name for agent in AGENTS.of(settings))
    return {
        name: stats[name].consecutive_failures
        for name in names
        if is_tripped(stats[name], resumed.get(name), general, now)
    }


def is_tripped(stats: AgentStats, resumed: Moment | None, general: AgentsSettings, now: Moment) -> bool:
    """Whether it has failed so often in a row that it is set aside, or on trial: then it gets one task at a time.

    resumed: when a person last wanted it to go on, if one did.
    """
    if stats.consecutive_failures < general.failures or stats.failed_at is None:
        return False
    return resumed is None or now.since(resumed) > now.since(stats.failed_at)


def pause_left(
    name: str, stats: AgentStats, runs: AgentRuns, general: AgentsSettings, now: Moment
) -> int | None:
    """Microseconds until it may be tried again, 0 if it is on trial; None if it is not set aside."""
    if not is_tripped(stats, runs.resumed.get(name), general, now) or stats.failed_at is None:
        return None
    pauses = Backoff(general.pause, max(general.pause, general.pause_max))
    pause = pauses.after(stats.consecutive_failures - general.failures + 1)
    return max(0, pause - now.since(stats.failed_at))
