"""One task: its state, and the table of what may happen to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.tasks import events

_VARYING = re.compile(r"[0-9a-f-]{8,}|\d[\d.,:]+")
"""What differs between two errors that are the same: ids, and numbers of more than one digit."""


class Status(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    ASSIGNED = "assigned"
    EXECUTING = "executing"
    ACKED = "acked"
    FAILED = "failed"
    BLOCKED = "blocked"
    CLOSED = "closed"
    GIVEN_UP = "given-up"


_ANYWHERE: Mapping[str, Status | None] = {events.TaskMoved.kind: None, events.TaskBlockersSet.kind: None}
_UNHELD: Mapping[str, Status | None] = {
    **_ANYWHERE,
    events.TaskClosed.kind: Status.CLOSED,
    events.TaskGivenUp.kind: Status.GIVEN_UP,
}

MOVES: Mapping[Status, Mapping[str, Status | None]] = {
    Status.PENDING: {
        events.TaskAssigned.kind: Status.ASSIGNED,
        events.TaskExecuting.kind: Status.EXECUTING,
        events.TaskBlocked.kind: Status.BLOCKED,
        events.TaskRetried.kind: Status.PENDING,
        **_UNHELD,
    },
    Status.ASSIGNED: {
        events.TaskAssigned.kind: Status.ASSIGNED,
        events.TaskExecuting.kind: Status.EXECUTING,
        events.TaskReleased.kind: Status.PENDING,
        events.TaskBlocked.kind: Status.BLOCKED,
        **_UNHELD,
    },
    Status.EXECUTING: {
        events.TaskHeartbeat.kind: None,
        events.TaskAcked.kind: Status.ACKED,
        events.TaskReleased.kind: Status.PENDING,
        events.TaskFailed.kind: Status.PENDING,
        events.TaskBlocked.kind: Status.BLOCKED,
        events.TaskGivenUp.kind: Status.GIVEN_UP,
        **_ANYWHERE,
    },
    Status.ACKED: {events.TaskRetried.kind: Status.PENDING, **_UNHELD},
    Status.FAILED: {events.TaskRetried.kind: Status.PENDING, **_UNHELD},
    Status.BLOCKED: {events.TaskRetried.kind: Status.PENDING, **_UNHELD},
    Status.CLOSED: {},
    Status.GIVEN_UP: {events.TaskRetried.kind: Status.PENDING, events.TaskClosed.kind: Status.CLOSED},
}
"""What may happen in each status, and the status after it; None: the same. A failure without a retry leads to FAILED."""

COMMANDS: Mapping[str, str] = {
    events.TaskAssigned.kind: "assign", events.TaskExecuting.kind: "claim", events.TaskHeartbeat.kind: "heartbeat",
    events.TaskAcked.kind: "ack", events.TaskClosed.kind: "close", events.TaskGivenUp.kind: "give-up",
    events.TaskReleased.kind: "release", events.TaskBlocked.kind: "block", events.TaskRetried.kind: "retry",
    events.TaskMoved.kind: "move", events.TaskBlockersSet.kind: "deps",
}  # fmt: skip
"""The command of `upulse task` by which a person or an agent says each of them; of a failure only its run does."""

HELD_BY_TOKEN = frozenset(MOVES[Status.EXECUTING]) - {events.TaskBlockersSet.kind}
"""Of an executing task only its holder may say these; with the token of the claim."""

STUCK = frozenset({Status.FAILED, Status.GIVEN_UP, Status.BLOCKED})
"""What waits for a task that stands so is blocked itself."""
ENDED = frozenset({Status.CLOSED, Status.GIVEN_UP})


@dataclass(frozen=True, slots=True)
class Project:
    """A project: where its repository is, its columns in their order, and which agents may do its tasks (none: all)."""

    repository: str = ""
    base: str = "main"
    columns: tuple[str, ...] = events.COLUMNS
    members: tuple[str, ...] = ()
    review: bool = False

    def has_member(self, agent: str) -> bool:
        """Whether this agent may do its tasks."""
        return not self.members or agent in self.members


@dataclass(frozen=True)
class TaskState:
    """A task as of now.

    claimed_from: the column in which it lay before a claim or a result moved it; attempts: how often it was claimed since
    it was created or retried by a person; blockers: which tasks must be closed before; parts: those of its parts that are
    not closed; waits_for: these, and the blockers that are not closed; stuck_on: those of them that have failed, were given
    up or are blocked; token: the row of the claim, 0 if nobody holds it; lease_us: how long the claim holds after `beat`;
    retry_us: how long after `since` an attempt that failed has to wait; shortages, same_failures: how often in a row the
    machine was short of something, and it failed as it did last; error: of the last attempt, or why it is blocked or
    given up; pull_request: where it is.
    """

    id: str
    project: str
    title: str
    created: Moment
    by: str
    prompt: str = ""
    priority: int = 0
    column: str = "Ready"
    claimed_from: str = ""
    status: Status = Status.PENDING
    since: Moment | None = None
    labels: tuple[str, ...] = ()
    parent: str | None = None
    blockers: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    stuck_on: tuple[str, ...] = ()
    due: int | None = None
    key: str = ""
    agent: str = ""
    attempts: int = 0
    token: int = 0
    lease_us: int = 0
    beat: Moment | None = None
    retry_us: int = 0
    shortages: int = 0
    same_failures: int = 0
    result: str = ""
    data: Mapping[str, Json] = field(default_factory=dict)
    error: str = ""
    pull_request: str = ""

    def changed(self, **news: Any) -> "TaskState":
        """A copy with other values, at a tenth of the price of `replace`: a start without checkpoints makes very many."""
        made = object.__new__(TaskState)
        made.__dict__.update(self.__dict__)
        made.__dict__.update(news)
        return made

    @property
    def standing(self) -> Status:
        """Its status for people: blocked, too, while what it waits for has failed, was given up or is blocked."""
        is_stuck = self.stuck_on and self.status in (Status.PENDING, Status.ASSIGNED)
        return Status.BLOCKED if is_stuck else self.status

    def failures_with(self, error: str) -> int:
        """How often in a row it will have failed alike if it fails with this error now."""
        return self.same_failures + 1 if _VARYING.sub("#", error) == _VARYING.sub("#", self.error) else 1

    def lease_left(self, now: Moment) -> int | None:
        """Microseconds until the claim ends; None if nobody holds it."""
        if not self.token or self.beat is None:
            return None
        return max(0, self.lease_us - now.since(self.beat))

    def retry_left(self, now: Moment) -> int:
        """Microseconds until it may be claimed again after a failure."""
        return max(0, self.retry_us - now.since(self.since)) if self.retry_us and self.since else 0
