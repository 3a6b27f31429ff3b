"""Runs of agents that nobody has cleaned up after, worktrees of tasks, and agents that are paused or were resumed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pulse_core.agents.events import (
    KINDS,
    AgentPaused,
    AgentResumed,
    AgentRunCleaned,
    AgentRunCounted,
    AgentRunEnded,
    AgentRunPaused,
    AgentRunPrinted,
    AgentRunStarted,
    AgentRunStopRequested,
    AgentSetAside,
    WorkspaceKept,
    WorkspaceMade,
    WorkspaceRemoved,
)
from pulse_core.model.durations import UNITS
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.payload import decode_plain
from pulse_core.ports.host import ProcessId
from pulse_core.projections.effects import newest
from pulse_core.projections.state import StateProjection

DAY, MOST_COSTS = UNITS["d"], 1_000
"""How long costs are remembered, and of how many runs of an agent."""
_STARTED = frozenset(AgentRunStarted.model_fields) - {"run"}  # a newer version may say more
FEWEST_USUAL = 5
"""Runs of an agent from which on it is known what is usual."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task.

    unlimited: why it has no limits; held: why it is or was paused, and paused: since when it is; stop: why it is to end;
    ended: when its program did; tokens, counted: how many it had told of, and when.
    """

    id: str
    task: str
    agent: str
    token: int
    pid: int
    started: int
    moment: Moment
    workspace: str = ""
    unlimited: str = ""
    held: str = ""
    paused: Moment | None = None
    stop: str = ""
    ended: Moment | None = None
    tokens: int = 0
    counted: Moment | None = None

    @property
    def main(self) -> ProcessId:
        """The process that was started."""
        return ProcessId(self.pid, self.started)


class RunCost(NamedTuple):
    """What one run has cost, as far as it told, and when it ended; turns, tokens, took_us: how many it took."""

    moment: Moment
    amount: float
    task: str
    turns: int = 0
    tokens: int = 0
    took_us: int = 0


class UsualRun(NamedTuple):
    """The average turns of an agent's runs, and their cost and tokens a minute; zeros while too few are known."""

    turns: float = 0.0
    cost: float = 0.0
    tokens: float = 0.0


class AverageCost(NamedTuple):
    """What a run costs, and a token; zeros where nothing is known."""

    run: float
    token: float


class KeptWorkspace(NamedTuple):
    """The folder of a task that has ended, and why it stays."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class AgentRuns:
    """runs: those that are not cleaned up, by id, oldest first; worktrees: of tasks, by task; kept: those that stay after
    their tasks, by task, the newest; paused: since when, by agent; aside: why an agent gets nothing until it is resumed;
    resumed: when a person last resumed an agent, by agent: failures before that don't count; costs: of the last day's runs
    that told theirs, by agent, oldest first."""

    runs: Mapping[str, Run] = field(default_factory=dict)
    worktrees: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, KeptWorkspace] = field(default_factory=dict)
    paused: Mapping[str, Moment] = field(default_factory=dict)
    aside: Mapping[str, str] = field(default_factory=dict)
    resumed: Mapping[str, Moment] = field(default_factory=dict)
    costs: Mapping[str, tuple[RunCost, ...]] = field(default_factory=dict)

    def cost_of_task(self, task: str) -> float:
        """What the attempts at a task have cost within the last day."""
        return sum(one.amount for costs in self.costs.values() for one in costs if one.task == task)

    def usual(self, agent: str, over: int) -> UsualRun:
        """An agent's usual run. over: what a shorter one counts as, microseconds, since its rate means little."""
        if len(known := self.costs.get(agent, ())) < FEWEST_USUAL:
            return UsualRun()
        minutes = sum(max(one.took_us, over) for one in known) / UNITS["m"]
        cost, tokens = sum(one.amount for one in known), sum(one.tokens for one in known)
        return UsualRun(sum(one.turns for one in known) / len(known), cost / minutes, tokens / minutes)

    def average_cost(self, agent: str) -> AverageCost:
        """What this agent's runs have cost on average within the last day."""
        known = self.costs.get(agent, ())
        cost, tokens = sum(one.amount for one in known), sum(one.tokens for one in known)
        return AverageCost(cost / max(1, len(known)), cost / tokens if tokens else 0.0)

    def over_budget_us(self, budget: float, now: Moment, yet: float = 0.0, agent: str = "") -> int:
        """Microseconds until what the runs of an agent, or of all, have cost in a day leaves room in a budget for what is to
        come, `yet`; if that alone is too much, a day. A budget of 0 is any amount."""
        known = [self.costs.get(agent, ())] if agent else self.costs.values() if budget else ()
        costs = [one for some in known for one in some if now.since(one.moment) < DAY]
        spent = 0.0
        if budget and round(yet, 6) > budget:
            return DAY
        # As many of the newest as leave room.
        for one in sorted(costs, key=lambda one: one.moment.at, reverse=True):
            spent += one.amount
            if budget and (spent >= budget or round(spent + yet, 6) > budget):
                return DAY - now.since(one.moment)
        return 0

    @property
    def live(self) -> tuple[Run, ...]:
        """Those whose program has not ended, as far as is known."""
        return tuple(run for run in self.runs.values() if run.ended is None)


def after(state: AgentRuns, events: Iterable[Event]) -> AgentRuns:
    """The runs after more events."""
    relevant = [event for event in events if event.kind in OF_RUNS]
    if not relevant:
        return state
    runs, worktrees, kept = dict(state.runs), dict(state.worktrees), dict(state.kept)
    paused, resumed, costs = dict(state.paused), dict(state.resumed), dict(state.costs)
    aside = dict(state.aside)
    for event in relevant:
        data = decode_plain(event.data)
        run = runs.get(str(data.get("run", "")))
        match event.kind:
            case AgentRunStarted.kind if data:
                given: dict[str, Any] = {name: data[name] for name in _STARTED & data.keys()}
                runs[str(data["run"])] = Run(str(data["run"]), event.subject, moment=event.moment, **given)
            case AgentRunPaused.kind if run:
                since = None if data.get("over") else event.moment
                runs[run.id] = replace(run, held=str(data.get("why", "")), paused=since)
            case AgentRunCounted.kind if run:
                runs[run.id] = replace(run, tokens=data.get("tokens", 0), counted=event.moment)
            case AgentRunStopRequested.kind if run:
                runs[run.id] = replace(run, stop=str(data.get("why", "")))
            case AgentRunEnded.kind if run:
                runs[run.id] = replace(run, ended=event.moment)
                amount, turns = cost_in(data.get("usage")), data.get("turns", 0)
                if amount or turns:  # whoever tells tokens takes turns
                    recent = [one for one in costs.get(run.agent, ()) if event.moment.since(one.moment) < DAY]
                    took, tokens = event.moment.since(run.moment), data.get("tokens", 0)
                    new = RunCost(event.moment, amount, run.task, turns, tokens, took)
                    costs[run.agent] = (*recent, new)[-MOST_COSTS:]
            case AgentRunCleaned.kind if run:
                del runs[run.id]
            case WorkspaceMade.kind if data:
                worktrees[event.subject] = str(data["path"])
                kept.pop(event.subject, None)
            case WorkspaceRemoved.kind | WorkspaceKept.kind:
                worktrees.pop(event.subject, None)
                kept.pop(event.subject, None)
                if "path" in data:
                    kept[event.subject] = KeptWorkspace(str(data["path"]), str(data.get("why", "")))
            case AgentPaused.kind:
                paused[event.subject] = event.moment
            case AgentSetAside.kind:
                aside[event.subject] = str(data.get("why", ""))
            case AgentResumed.kind:
                for known in (paused, aside, resumed):
                    known.pop(event.subject, None)
                resumed[event.subject] = event.moment
    return AgentRuns(runs, worktrees, newest(kept), newest(paused), newest(aside), newest(resumed), costs)


def cost_in(usage: object) -> float:
    """The cost that an agent tells among its usage; 0 if it tells none."""
    told = usage.get("total_cost_usd") if isinstance(usage, Mapping) else None
    return float(told) if isinstance(told, int | float) and told > 0 else 0.0


OF_RUNS = frozenset(kind.kind for kind in KINDS if kind is not AgentRunPrinted)
RUNS = StateProjection("agent-runs", 9, AgentRuns, OF_RUNS, after)
