"""When an agent gets nothing for a while: it is paused, failed repeatedly, or is near a budget. Pure."""

from collections import defaultdict

from pulse_core.agents.actions import RUN_AGENT
from pulse_core.agents.projection import RUNS
from pulse_core.agents.settings import GENERAL, AgentSettings, agents_of
from pulse_core.model.backoff import Backoff
from pulse_core.model.durations import duration_text
from pulse_core.model.moment import Moment
from pulse_core.model.text import count
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.settings import Settings
from pulse_core.tasks.stats import STATS

CONDITION = "agent:"
"""What the names of conditions about agents begin with; the agent's name follows."""


class Budgets:
    """What may still be spent today. What each run that is at work or begins may cost is set aside: together they can't go
    over a budget. begun: the agents of these runs, by task."""

    def __init__(self, curr: Snapshot) -> None:
        self._curr, self._runs = curr, curr.of(RUNS)
        wishes = (one for one in curr.effects.open.values() if one.action == RUN_AGENT.name)
        begun = ((str(one.params.get("task")), str(one.params.get("agent"))) for one in wishes)
        self.begun = {**dict(begun), **{run.task: run.agent for run in self._runs.live}}
        self._agents, self._reserved = agents_of(curr.settings), defaultdict[str, float](float)
        for name in self.begun.values():
            self.reserve(name)

    def reserve(self, name: str) -> None:
        """Set aside what one more run of this agent may cost."""
        self._reserved[name] += self._of_run(name)

    def _of_run(self, name: str) -> float:
        agent = self._agents.get(name)
        return agent.cost_per_run if agent and agent.cost_per_run else self._runs.average_cost(name).run

    def near(self, agent: AgentSettings) -> tuple[int, str]:
        """For how many microseconds at most one more run of this agent might go over a budget, and over which."""
        own, whole, name = agent.cost_per_day, GENERAL.of(self._curr.settings).cost_per_day, agent.name
        now, yet = self._curr.now, self._of_run(name)
        its = self._runs.over_budget_us(own, now, self._reserved[name] + yet, name), f"its budget of {own:g}"
        left = self._runs.over_budget_us(whole, now, sum(self._reserved.values()) + yet)
        return max(its, (left, f"the budget of all agents of {whole:g}"))


def unavailable(agent: AgentSettings, curr: Snapshot, budgets: Budgets | None = None) -> str:
    """Why an agent gets no task at this moment, whatever task; empty if it may get one."""
    if agent.name in curr.of(RUNS).paused:
        return "paused by a person"
    if why := curr.of(RUNS).aside.get(agent.name):
        return f"set aside until it is resumed: {why}"
    if left := pause_left(agent.name, curr.state, curr.settings, curr.now):
        failures = curr.of(STATS)[agent.name].consecutive_failures
        return f"set aside for {duration_text(left)} after {count(failures, 'failure')} in a row"
    left, which = (budgets or Budgets(curr)).near(agent)
    return f"at or near {which} a day for at most another {duration_text(left)}" if left else ""


def failing_agents(state: State, settings: Settings, now: Moment) -> dict[str, str]:
    """Why agents are set aside or on trial, in words, by the names of their conditions."""
    stats, aside, found = state.of(STATS), state.of(RUNS).aside, dict[str, str]()
    for name in agents_of(settings):
        if name in aside:
            found[CONDITION + name] = f"{aside[name]}; once that is mended, upulse agents doctor has it go on"
        elif pause_left(name, state, settings, now) is not None:
            pause = duration_text(_pause(failures := stats[name].consecutive_failures, settings))
            found[CONDITION + name] = f"{count(failures, 'failure')} in a row, which set it aside for {pause}"
    return found


def pause_left(name: str, state: State, settings: Settings, now: Moment) -> int | None:
    """Microseconds until it may be tried again, 0 if it is on trial; None if it is not set aside, or was resumed since."""
    stats, general = state.of(STATS)[name], GENERAL.of(settings)
    if stats.consecutive_failures < general.failures or stats.failed_at is None:
        return None
    if (resumed := state.of(RUNS).resumed.get(name)) and now.since(resumed) <= now.since(stats.failed_at):
        return None
    return max(0, _pause(stats.consecutive_failures, settings) - now.since(stats.failed_at))


def _pause(failures: int, settings: Settings) -> int:
    general = GENERAL.of(settings)
    pauses = Backoff(general.pause, max(general.pause, general.pause_max))
    return pauses.after(failures - general.failures + 1)
