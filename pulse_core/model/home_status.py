"""Who holds a home, and its status as JSON values: a daemon's answer over its socket, and of `upulse status --json`.

The statuses are typed dictionaries, since the answer comes as JSON, maybe from a daemon of another version, and goes out as
JSON unchanged. An older daemon may leave out keys that are listed here, a newer one may add some.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from pulse_core.model.json_types import Json
from pulse_core.model.text import listed

SHOWN_PIDS = 12


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a home's lock, or did last. since_at: UTC microseconds; boot: the kernel's boot id.

    pid, since_at, version: 0 or empty if that is unknown.
    """

    pid: int
    boot: str
    since_at: int
    version: str


@dataclass(frozen=True, slots=True)
class FailedDaemon:
    """A daemon that gave up: when it had taken the home, when that was (both UTC microseconds), and why."""

    began: int
    at: int
    why: str


class DaemonFailure(TypedDict):
    """Why a daemon gave up, and when; started: whether it had recorded its start, and not given up before."""

    at: str
    why: str
    started: bool


class OriginalDaemon(TypedDict):
    """A daemon that runs with the same log in another place; `home` is empty if nobody can tell that."""

    pid: int
    home: str


class DaemonStatus(TypedDict):
    """`state` is `starting`, `running`, `stopping`, or, where it does not answer, `not-answering` or `stopped`.

    since: when it came into this state. died: whether the last one that has recorded its start ended without recording that;
    failed: why the newest one gave up, if it did; copy_of: the daemon that runs with the log of which this home has a copy.
    """

    state: str
    pid: int | None
    since: str | None
    version: str | None
    died: NotRequired[bool]
    failed: NotRequired[DaemonFailure]
    copy_of: NotRequired[OriginalDaemon]


def daemon_word(daemon: Mapping[str, Any] | DaemonStatus) -> str:
    """What people are told of a daemon: its state, or how it ended."""
    if failed := daemon.get("failed"):
        return "gave up" if failed["started"] else "did not start"
    return "died" if daemon.get("died") else daemon["state"]


class PauseStatus(TypedDict):
    """Who paused Pulse, since when and why."""

    since: str
    by: str
    why: str


class SafeModeStatus(TypedDict):
    """Since when Pulse runs in safe mode, after how many crashes in a row, and what is not run."""

    since: str
    crashes: int
    left_out: Sequence[str]


class LogStatus(TypedDict):
    """How many rows the log has, when it was verified, its damage, how many events could not be written yet, and how many
    will not be for want of room; held: of the former, how many of each kind; refusing: since when and why requests are
    refused, in words."""

    rows: int
    verified: str | None
    damage: str | None
    unwritten: int
    left_out: NotRequired[int]
    held: NotRequired[Mapping[str, int]]
    refusing: NotRequired[str]


class HeldStatus(TypedDict):
    """What holds back a restart, or the answer to a condition, as `a pause of ada`, and since when.

    or_earlier: the daemon that answers found it so when it began, and knows nothing of before.
    """

    by: str
    since: str
    or_earlier: NotRequired[bool]


class GuardedProcessStatus(TypedDict):
    """A guarded process; `why` is the watchdog's reason for its state, `leftovers` are the pids of earlier lives.

    since: when it came up, was started (`starting`), or went down, whatever holds it down by now;
    usage: what its tree takes, as the newest sample says: bytes of memory, cores, threads, descriptors, processes; None
    while it is down, or nobody has looked lately; held: what holds its restart back, as far as the daemon that answers
    knows; restarts: how often it was started, whoever asked for it, but for its first start.
    """

    name: str
    state: str
    pid: int | None
    since: str | None
    restarts: int
    why: str
    leftovers: NotRequired[Sequence[int]]
    usage: NotRequired[Mapping[str, float | None] | None]
    held: NotRequired[HeldStatus | None]


class UnguardedStatus(TypedDict):
    """The live processes that were started for a name that is no longer in the settings."""

    name: str
    pids: Sequence[int]


class ConditionStatus(TypedDict):
    """A condition that stands, and how many measures were tried; held: what holds the next one back, as far as the daemon
    that answers knows."""

    name: str
    state: str
    since: str
    evidence: str
    tried: int
    held: NotRequired[HeldStatus | None]


class NoticesStatus(TypedDict):
    """How many topics are not over, how many notices are not delivered, what holds those back, and why addresses can take no
    notice."""

    standing: int
    waiting: int
    held_back: str | None
    faults: NotRequired[Sequence[str]]


class DurationsStatus(TypedDict):
    """How durations are distributed: how many were within each bound and above the one before; the last count is of longer
    ones."""

    bounds_ms: Sequence[float]
    counts: Sequence[int]
    sum_ms: float


class TickStatus(TypedDict):
    """How many ticks there were, and what they took in milliseconds; durations: of all since the daemon started."""

    count: int
    last_ms: float | None
    p99_ms: float | None
    durations: NotRequired[DurationsStatus]


class DisabledStatus(TypedDict):
    """Who disabled the engine, since when and why."""

    since: str
    by: str
    why: str


class EngineHostStatus(TypedDict):
    """The user's rules as the daemon runs them.

    commit: in force; runs: the one that a host runs; degraded: that is another one; set_aside: why no host runs; rules,
    watchers, executors: their names; quarantined: rules that are passed over, and why; errors: since the commit is in force;
    sandbox: which parts of it hold; missing: why others don't; without_plugins: why they are left out, but by safe mode;
    restarts: of the host; requests: that are not answered; left_out: by safe mode; gone: why there is no engine any more;
    starting: whether a host is being started.
    """

    commit: str | None
    runs: str | None
    starting: NotRequired[bool]
    degraded: NotRequired[bool]
    set_aside: NotRequired[str | None]
    rules: Sequence[str]
    watchers: Sequence[str]
    executors: Sequence[str]
    quarantined: Mapping[str, str]
    errors: NotRequired[int]
    rolled_back: NotRequired[str | None]
    sandbox: Mapping[str, Json]
    missing: NotRequired[Mapping[str, str]]
    without_plugins: NotRequired[str | None]
    restarts: NotRequired[int]
    requests: NotRequired[int]
    disabled: NotRequired[DisabledStatus | None]
    left_out: NotRequired[bool]
    gone: NotRequired[str]


class ShedStatus(TypedDict):
    """How many measures Pulse has taken to use less itself, which, and why."""

    level: int
    measures: Sequence[str]
    evidence: str


class WatcherStatus(TypedDict):
    """What a watcher costs: its newest looks, which cover `over_s` seconds; interval_s: from one to the next on average;
    cpu: the share of a core that they took."""

    name: str
    interval_s: float
    looks: int
    failures: int
    p50_ms: float | None
    p99_ms: float | None
    cpu: float | None
    over_s: float


class SinceStartStatus(TypedDict):
    """What has happened since the daemon started: how many rollbacks; how long restarts took, from the death to up again;
    and how long attempts at effects took, by action."""

    rollbacks: int
    restarts: DurationsStatus
    effects: Mapping[str, DurationsStatus]


class HomeStatus(TypedDict):
    """The whole status. Only a running daemon reports its engine, its own load, its watchers, what `blast_radius` holds
    back, which rules raised in their newest fold and what, why samples are lost, or what processes print, and what has
    happened since it started."""

    daemon: DaemonStatus
    paused: PauseStatus | None
    log: LogStatus
    processes: Sequence[GuardedProcessStatus]
    unguarded: NotRequired[Sequence[UnguardedStatus]]
    effects: Mapping[str, int]
    conditions: Sequence[ConditionStatus]
    notices: NoticesStatus
    capabilities: Mapping[str, Sequence[str]]
    programs: NotRequired[Sequence[str]]
    tick: TickStatus
    vitals: Mapping[str, Mapping[str, Json]]
    engine: NotRequired[EngineHostStatus | None]
    shed: NotRequired[ShedStatus | None]
    watchers: NotRequired[Sequence[WatcherStatus]]
    held_back: NotRequired[Sequence[str]]
    raising: NotRequired[Mapping[str, str]]
    set_aside: NotRequired[Mapping[str, str]]
    samples_lost: NotRequired[str]
    outputs_lost: NotRequired[str]
    since_start: NotRequired[SinceStartStatus]
    safe_mode: NotRequired[SafeModeStatus | None]
    settings_faults: NotRequired[Sequence[str]]
    settings_refused: NotRequired[Sequence[str]]


def left_running(status: HomeStatus) -> str:
    """What the end of a daemon leaves running: guarded processes, what is left of earlier lives, and agents' programs."""
    up = [words for process in status["processes"] if (words := _alive_of(process))]
    up += [
        f"{gone['name']} (not in the settings any more: {' '.join(map(str, gone['pids']))})"
        for gone in status.get("unguarded", ())
    ]
    up += status.get("programs", ())
    return f"Left running, unguarded: {', '.join(up)}." if up else "It left no process running."


def _alive_of(process: GuardedProcessStatus) -> str:
    """A guarded process with what of it lives, in words; empty if nothing does."""
    name, pid, left = process["name"], process["pid"], process.get("leftovers", ())
    parts = [f"process {pid}"] if pid else []
    if left:
        parts.append(f"left of its earlier lives: {listed(left, SHOWN_PIDS)}")
    if parts:
        return f"{name} ({'; '.join(parts)})"
    return name if process["state"] == "up" else ""
