"""What commands print with `--json`, as typed dictionaries, where code makes it as such; the status is in `home_status`.

`docs.json_types` and `docs.json_answers` have all others, and which command prints what.

Moments are ISO 8601 in UTC. A key of a `NotRequired` may be missing, all others are always there.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from pulse_core.model.home_status import (
    DisabledStatus,
    EngineHostStatus,
    HeldStatus,
    WatcherStatus,
)
from pulse_core.model.json_types import Json


class EffectJson(TypedDict):
    """An effect, and what became of it.

    seq, at, actor, cause: of the event that requested it; damaged: why its data can't be read; next_try: when one that
    failed is due again; outcome: the data of the event that settled it.
    """

    id: str
    seq: int
    at: str
    actor: str
    cause: str | None
    action: str | None
    key: str
    params: Mapping[str, Json]
    reason: str
    damaged: str | None
    rule: str
    tick: int | None
    state: str
    attempts: int
    next_try: str | None
    took_ms: float | None
    outcome: Json


class MeasureJson(TypedDict):
    """What was done about an incident: how many times, and with what outcomes, `open` for those that are not settled,
    `sent-to-some` for notices that not every address has."""

    action: str
    key: str
    effect: str
    times: int
    outcomes: Mapping[str, int]
    reason: str
    said: str


class CauseJson(TypedDict):
    """What was seen of an incident, but for process ids and measured values: the newest words, and how often.

    varies: more than the id of the process differed; unexplained: a death of which nobody knows how it came.
    """

    evidence: str
    times: int
    first: str
    last: str
    varies: bool
    unexplained: bool


class IncidentJson(TypedDict):
    """One episode of one thing.

    evidence: what was seen last; causes: what was seen of it, each with its times, of logs none; requests: what
    people requested meanwhile; requested: whether they did since it was last well; delays: what had held back the
    answers to it; held: what does so now; wrong_ms: `lasted_ms` without the times at which it was well in between,
    or at which nobody looked at a condition; began_after: if it began while no daemon ran, when it may have been
    well last: it began between that and `began`, and both durations are the least; unsure_ms: how much `wrong_ms`
    may be more; faded: nobody said that it is over, but it did not come again; last_seen: when an error or a log
    line was seen last, of which nobody knows yet whether it comes again; printed: what a process printed last;
    helped: whether what was done did; null if nobody knows (doubt: why), or people were only told.
    """

    id: str
    about: str
    subject: str
    began: str
    began_after: str | None
    ended: str | None
    lasted_ms: float | None
    wrong_ms: float | None
    unsure_ms: float
    faded: bool
    last_seen: str | None
    times: int
    evidence: str
    causes: Sequence[CauseJson]
    printed: str
    measures: Sequence[MeasureJson]
    requests: Sequence[str]
    requested: bool
    delays: Sequence[str]
    held: HeldStatus | None
    helped: bool | None
    doubt: str
    ended_by: str


class HelperCostJson(TypedDict):
    """What a child process of the daemon costs: its share of a core, and bytes of memory."""

    module: str
    pid: int
    cpu: float
    rss: int


class CostJson(TypedDict):
    """How often something was done, and what that took."""

    calls: int
    p50_us: int | None
    p99_us: int | None
    total_us: int


class RuleCostJson(CostJson):
    """What a rule costs; share: of the time of all rules, 0 to 1."""

    rule: str
    errors: int
    share: float


class ProfileJson(TypedDict):
    """What each part of Pulse costs; `watchers` and `helpers` are null while no daemon answers."""

    since: str
    watchers: Sequence[WatcherStatus] | None
    helpers: Sequence[HelperCostJson] | None
    ticks: CostJson
    rules: Sequence[RuleCostJson]


class StagingJson(TypedDict):
    """Staging beside main; dirty: files that are not committed; advice: what to do, in words."""

    commit: str
    dirty: Sequence[str]
    ahead: int
    behind: int
    advice: Sequence[str]


class EngineStatusJson(TypedDict):
    """How your own rules stand.

    running: what the daemon says of them; commit: in force; good: the last one that was; main: of the branch; moved: what
    is to be said if somebody moved it; requests: the commits that were asked for and not answered.
    """

    running: EngineHostStatus | None
    commit: str | None
    previous: str | None
    good: str | None
    main: str
    moved: str
    errors: int
    breakdowns: int
    quarantined: Mapping[str, str]
    disabled: DisabledStatus | None
    requests: Sequence[str]
    staging: StagingJson


class TurnJson(TypedDict):
    """A promote or a rollback, and what happened until the next one; previous: the commit before it."""

    commit: str
    at: str
    kind: str
    by: str
    why: str
    gates: Sequence[str]
    changes: str
    previous: str
    to: str
    errors: int
    quarantined: list[str]
    rules: Sequence[str]


class TurnPageJson(TurnJson):
    """A promote or a rollback with the difference of its files."""

    diff: str
