"""Runs of agents that nobody has cleaned up after, worktrees of tasks, and agents that are paused or were resumed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pulse_core.agents.events import (
    KINDS,
    AgentPaused,
    AgentResumed,
    AgentRunCleaned,
    AgentRunEnded,
    AgentRunStarted,
    AgentRunStopRequested,
    WorkspaceKept,
    WorkspaceMade,
    WorkspaceRemoved,
)
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.payload import decode_plain
from pulse_core.ports.host import ProcessId
from pulse_core.projections.state import StateProjection

REMEMBERED = 1_000
"""Agents that were paused or resumed, and are remembered."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task. stop: why it is to end; ended: when its program did."""

    id: str
    task: str
    agent: str
    token: int
    pid: int
    started: int
    moment: Moment
    workspace: str = ""
    stop: str = ""
    ended: Moment | None = None

    @property
    def main(self) -> ProcessId:
        """The process that was started."""
        return ProcessId(self.pid, self.started)


@dataclass(frozen=True, slots=True)
class AgentRuns:
    """runs: those that are not cleaned up, by id, oldest first; worktrees: of tasks, by task; paused: since when, by agent;
    resumed: when a person last resumed an agent, by agent: failures before that don't count."""

    runs: Mapping[str, Run] = field(default_factory=dict)
    worktrees: Mapping[str, str] = field(default_factory=dict)
    paused: Mapping[str, Moment] = field(default_factory=dict)
    resumed: Mapping[str, Moment] = field(default_factory=dict)

    @property
    def live(self) -> tuple[Run, ...]:
        """Those whose program has not ended, as far as is known."""
        return tuple(run for run in self.runs.values() if run.ended is None)


def after(state: AgentRuns, events: Iterable[Event]) -> AgentRuns:
    """The runs after more events."""
    relevant = [event for event in events if event.kind in OF_RUNS]
    if not relevant:
        return state
    runs, worktrees = dict(state.runs), dict(state.worktrees)
    paused, resumed = dict(state.paused), dict(state.resumed)
    for event in relevant:
        data = decode_plain(event.data)
        run = runs.get(str(data.get("run", "")))
        match event.kind:
            case AgentRunStarted.kind if data:
                given: dict[str, Any] = {name: value for name, value in data.items() if name != "run"}
                runs[str(data["run"])] = Run(str(data["run"]), event.subject, moment=event.moment, **given)
            case AgentRunStopRequested.kind if run:
                runs[run.id] = replace(run, stop=str(data.get("why", "")))
            case AgentRunEnded.kind if run:
                runs[run.id] = replace(run, ended=event.moment)
            case AgentRunCleaned.kind if run:
                del runs[run.id]
            case WorkspaceMade.kind if data:
                worktrees[event.subject] = str(data["path"])
            case WorkspaceRemoved.kind | WorkspaceKept.kind:
                worktrees.pop(event.subject, None)
            case AgentPaused.kind:
                paused[event.subject] = event.moment
            case AgentResumed.kind:
                paused.pop(event.subject, None)
                resumed.pop(event.subject, None)
                resumed[event.subject] = event.moment
    return AgentRuns(runs, worktrees, _newest(paused), _newest(resumed))


def _newest(found: Mapping[str, Moment]) -> Mapping[str, Moment]:
    return dict(islice(found.items(), max(0, len(found) - REMEMBERED), None))


OF_RUNS = frozenset(kind.kind for kind in KINDS)
RUNS = StateProjection("agent-runs", 2, AgentRuns, OF_RUNS, after)
