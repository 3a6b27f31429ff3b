"""How agents have done so far: what they were given, what they finished, and how often in a row they failed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.payload import decode_plain
from pulse_core.projections.state import StateProjection
from pulse_core.tasks.events import (
    TaskAcked,
    TaskAssigned,
    TaskClosed,
    TaskCreated,
    TaskExecuting,
    TaskFailed,
    TaskGivenUp,
    TaskReleased,
)


@dataclass(frozen=True, slots=True)
class LabelStats:
    """How an agent has done with tasks of one label."""

    closed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class AgentStats:
    """How one agent has done. took_us: microseconds from claim to result, of `acked` attempts together; failed: attempts
    that failed, were given up, or whose lease ended; failed_at: when the last one did."""

    assigned: int = 0
    acked: int = 0
    closed: int = 0
    given_up: int = 0
    failed: int = 0
    consecutive_failures: int = 0
    took_us: int = 0
    failed_at: Moment | None = None
    labels: Mapping[str, LabelStats] = field(default_factory=dict)

    @property
    def average_duration_us(self) -> int | None:
        """Microseconds from claim to result, on average; None before the first one."""
        return self.took_us // self.acked if self.acked else None


@dataclass(frozen=True, slots=True)
class Work:
    """An open task for statistics: its labels, who was last at it, since when it is claimed, and whether it is done."""

    labels: tuple[str, ...] = ()
    agent: str = ""
    claimed: Moment | None = None
    acked: bool = False


@dataclass(frozen=True, slots=True)
class AgentCapabilityStats:
    """The statistics by agent, and the open tasks that they will come from."""

    agents: Mapping[str, AgentStats] = field(default_factory=dict)
    open: Mapping[str, Work] = field(default_factory=dict)

    def __getitem__(self, agent: str) -> AgentStats:
        return self.agents.get(agent, NONE)

    def __iter__(self) -> Iterator[str]:
        return iter(self.agents)


NONE = AgentStats()

FEW, FEW_NAMES = 200, 1_000
"""Open tasks, and names of agents and labels, up to which the statistics are stored with each tick that emitted effects."""
MOST, MOST_LABELS = 1_000, 200
"""Agents, of which any name may be claimed under, and labels of each: those counted last, and who was given a task."""

KINDS = frozenset(
    kind.kind
    for kind in (
        TaskCreated, TaskAssigned, TaskExecuting, TaskAcked, TaskClosed, TaskGivenUp, TaskReleased, TaskFailed
    )
)  # fmt: skip


def after(state: AgentCapabilityStats, events: Iterable[Event]) -> AgentCapabilityStats:
    """The statistics after more events."""
    agents, open_ = dict(state.agents), dict(state.open)

    def count(agent: str, stats: AgentStats) -> None:
        agents.pop(agent, None)
        agents[agent] = stats
        if len(agents) > MOST and (oldest := next((one for one in agents if not agents[one].assigned), "")):
            del agents[oldest]

    for event in events:
        if event.kind not in KINDS:
            continue
        data, work = decode_plain(event.data), open_.get(event.subject, Work())
        agent = str(data.get("agent", work.agent))
        stats = agents.get(agent, NONE)
        if event.kind == TaskCreated.kind:
            open_[event.subject] = Work(tuple(data.get("labels", ())))
        elif event.kind == TaskAssigned.kind:
            open_[event.subject] = replace(work, agent=agent)
            count(agent, replace(stats, assigned=stats.assigned + 1))
        elif event.kind == TaskExecuting.kind:
            open_[event.subject] = replace(work, agent=agent, claimed=event.moment, acked=False)
        elif event.kind == TaskAcked.kind and work.claimed:
            took_us = stats.took_us + event.moment.since(work.claimed)
            count(agent, replace(stats, acked=stats.acked + 1, took_us=took_us, consecutive_failures=0))
            open_[event.subject] = replace(work, claimed=None, acked=True)
        elif event.kind == TaskClosed.kind:
            if work.acked:  # else it was not done, and needs not be
                labels = _counted(stats.labels, work.labels, closed=1)
                count(agent, replace(stats, closed=stats.closed + 1, labels=labels))
            open_.pop(event.subject, None)
        elif work.claimed:
            if _is_failure(event, data):
                failed, given_up = stats.failed + 1, stats.given_up + (event.kind == TaskGivenUp.kind)
                labels = _counted(stats.labels, work.labels, failed=1)
                in_a_row = stats.consecutive_failures + 1
                stats = replace(stats, failed=failed, given_up=given_up, failed_at=event.moment)
                count(agent, replace(stats, consecutive_failures=in_a_row, labels=labels))
            open_[event.subject] = replace(work, claimed=None)
        if event.kind == TaskGivenUp.kind:  # one that is retried is known again once it is claimed
            open_.pop(event.subject, None)
    return AgentCapabilityStats(agents, open_)


def _is_failure(event: Event, data: Mapping[str, Any]) -> bool:
    """Not that of who releases a task, or could not begin; nor if a person, without a token, gave it up meanwhile."""
    if event.kind == TaskGivenUp.kind:
        return data.get("token") is not None
    if data.get("blameless") or data.get("unbegun"):
        return False
    return event.kind != TaskReleased.kind or bool(data.get("expired"))


def _counted(
    before: Mapping[str, LabelStats], labels: Iterable[str], closed: int = 0, failed: int = 0
) -> Mapping[str, LabelStats]:
    found = dict(before)
    for label in labels:
        one = found.pop(label, LabelStats())
        found[label] = LabelStats(one.closed + closed, one.failed + failed)
    return dict(list(found.items())[-MOST_LABELS:])


def is_small(state: AgentCapabilityStats) -> bool:
    """Whether little is to be stored: to encode the most that there may be takes half a second of the loop."""
    names = sum(1 + len(one.labels) for one in state.agents.values())
    return len(state.open) <= FEW and names <= FEW_NAMES


STATS = StateProjection("agent-capability-stats", 5, AgentCapabilityStats, KINDS, after, is_small)
