"""When an agent is set aside because it failed repeatedly, and for how long. Pure."""

from collections.abc import Mapping

from pulse_core.agents.projection import RUNS
from pulse_core.agents.settings import GENERAL, agents_of
from pulse_core.model.backoff import Backoff
from pulse_core.model.moment import Moment
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.tasks.stats import STATS


def failing_agents(state: State, settings: Settings, now: Moment) -> Mapping[str, int]:
    """The agents that are set aside or on trial, each with its failures in a row."""
    return {
        name: state.of(STATS)[name].consecutive_failures
        for name in agents_of(settings)
        if pause_left(name, state, settings, now) is not None
    }


def pause_left(name: str, state: State, settings: Settings, now: Moment) -> int | None:
    """Microseconds until it may be tried again, 0 if it is on trial; None if it is not set aside, or was resumed since."""
    stats, general = state.of(STATS)[name], GENERAL.of(settings)
    if stats.consecutive_failures < general.failures or stats.failed_at is None:
        return None
    if (resumed := state.of(RUNS).resumed.get(name)) and now.since(resumed) <= now.since(stats.failed_at):
        return None
    pauses = Backoff(general.pause, max(general.pause, general.pause_max))
    pause = pauses.after(stats.consecutive_failures - general.failures + 1)
    return max(0, pause - now.since(stats.failed_at))
