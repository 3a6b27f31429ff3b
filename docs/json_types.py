"""What the core's commands print with `--json`, as typed dictionaries, where no code of the packages needs them.

`pulse_core.model.json_answers` has those that the code itself makes, and what is said there of moments and keys holds here.
"""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from pulse_core.model.home_status import (
    ConditionStatus,
    DaemonStatus,
    GuardedProcessStatus,
)
from pulse_core.model.json_answers import EffectJson, IncidentJson
from pulse_core.model.json_types import Json
from pulse_core.ports.host import ProcessUsage


class EventJson(TypedDict):
    """An event.

    seq: its row; actor: who recorded it: `pulse`, `engine`, or a user; host: in whose log it is; cause: the id of the event
    because of which it is; data: those of its kind.
    """

    seq: int
    id: str
    at: str
    kind: str
    subject: str
    actor: str
    host: str
    cause: str | None
    data: Json


class TimedEventJson(EventJson):
    """An event, and how many milliseconds after the first moment that is told of it was."""

    ms: float


class EffectPageJson(EffectJson):
    """An effect with its events; held_back: why a notice does not go out now."""

    held_back: str | None
    events: Sequence[EventJson]


class LayerJson(TypedDict):
    """What one rule did: passed, added, dropped, bypassed or error."""

    rule: str
    outcome: str
    notes: Sequence[str]
    took_us: int


class ExplainedLayerJson(LayerJson):
    """What one rule did, and the keys of the effects that it requests."""

    effects: Sequence[str]


class RequestedEffectJson(TypedDict):
    """An effect that a rule requests; open: whether its key is open, so that it would not be recorded again."""

    key: str
    action: str
    rule: str
    reason: str
    open: bool


class WithheldEffectJson(TypedDict):
    """An effect that a rule requests, and why nothing comes of it."""

    key: str
    action: str
    rule: str
    reason: str
    why: str


class ExplanationJson(TypedDict):
    """A snapshot folded through the rules, the outermost first."""

    at: str
    tick: int
    seq: int
    rules: Sequence[ExplainedLayerJson]
    effects: Sequence[RequestedEffectJson]
    withheld: Sequence[WithheldEffectJson]
    next_tick_ms: int
    caveats: Sequence[str]


class SampleJson(TypedDict):
    """A sample that an effect stands on; words: what it says about that."""

    id: int
    key: str
    at: str
    words: str
    data: Json
    ms: float


class TickJson(TypedDict):
    """The tick in which an effect was requested."""

    number: int
    at: str
    ms: float
    woken_by: str
    took_ms: float
    seq: int
    layers: Sequence[LayerJson]
    snapshot: str | None
    snapshot_kept: bool


class AttemptJson(TypedDict):
    """An attempt at an effect."""

    ms: float
    took_ms: float | None
    end: TimedEventJson | None


class AboutJson(TypedDict):
    """How something is now; of the kinds `pulse`, `task` and `check` there is no more."""

    kind: str
    name: str
    state: str
    since: str | None
    why: str


class UsageConditionJson(TypedDict):
    """A condition that stands of what a process takes."""

    name: str
    state: str
    since: str
    evidence: str


class AboutProcessJson(AboutJson):
    """How a process is now; held_by: who or what holds back its restart; held_since: since when, or earlier
    (held_or_earlier), as far as the daemon that answers knows; incident: the ongoing one; conditions: that stand of what it
    takes; request: the last one."""

    held_by: str | None
    held_since: str | None
    held_or_earlier: bool
    incident: IncidentJson | None
    conditions: Sequence[UsageConditionJson]
    request: EventJson | None


class TriedMeasureJson(TypedDict):
    """What was done about a condition, and what came of it, in words."""

    action: str
    at: str
    outcome: str


class AboutConditionJson(AboutJson):
    """How a condition is now; next: what rules say of what comes next; held_by: what holds back the answer to it, and
    held_since when, or earlier (held_or_earlier), as far as the daemon that answers knows."""

    held_by: NotRequired[str | None]
    held_since: NotRequired[str | None]
    held_or_earlier: NotRequired[bool]
    measures: Sequence[TriedMeasureJson]
    next: Sequence[str]


class HeldEffectJson(TypedDict):
    """An effect that a silence holds back now."""

    key: str
    reason: str


class AboutSilenceJson(AboutJson):
    """How a silence is now; next: when one of the settings begins the next time."""

    by: str
    ends: str | None
    next: str | None
    holds_back: Sequence[HeldEffectJson]


class WhyJson(TypedDict):
    """Why something is as it is, and the last effect about it from what was sensed to what followed; `ms` counts from the
    first of these moments. missing: what is not known of it any more, or not yet."""

    about: AboutJson | AboutProcessJson | AboutConditionJson | AboutSilenceJson | None
    effect: EffectJson | None
    origin: TimedEventJson | None
    samples: Sequence[SampleJson]
    seen: TimedEventJson | None
    tick: TickJson | None
    wish: TimedEventJson | None
    attempts: Sequence[AttemptJson]
    outcome: TimedEventJson | None
    followed: TimedEventJson | None
    missing: Sequence[str]


class TreeJson(TypedDict):
    """What the processes of a tree take together, and each of them."""

    memory: int
    cpu_us: int
    threads: int
    descriptors: int | None
    processes: Sequence[ProcessUsage]


class ProcessPageJson(GuardedProcessStatus):
    """A guarded process with its tree, what its probes say, its newest events, and the lines that it printed last.

    conditions: those that stand of what it takes; last_known: why what is told may be over; events_more: whether there are
    more events.
    """

    conditions: Sequence[ConditionStatus]
    last_known: str | None
    tree: TreeJson | None
    probe: Mapping[str, Json]
    events: Sequence[EventJson]
    events_more: bool
    last_lines: Sequence[str]


class DaemonPageJson(DaemonStatus):
    """The daemon, and the path of its systemd unit."""

    unit: str | None


class InstanceJson(DaemonStatus):
    """A home on this machine; name: of its instance."""

    name: str | None
    home: str
    unit: str | None


class PointJson(TypedDict):
    """A value at a time."""

    at: str
    value: float


class SeriesJson(TypedDict):
    """One number over time, oldest first."""

    name: str
    points: Sequence[PointJson]


class GateJson(TypedDict):
    """A gate's word: passed, skipped or failed; took: seconds."""

    name: str
    outcome: str
    words: str
    took: float


class PromoteJson(TypedDict):
    """A promote; answer: the daemon's event, null if it was refused or no daemon runs yet."""

    commit: str
    gates: Sequence[GateJson]
    answer: EventJson | None


class PluginJson(TypedDict):
    """An installed plugin, and what it brings; error: why that is not known."""

    name: str
    value: str
    package: str
    version: str
    rules: Sequence[str]
    projections: Sequence[str]
    watchers: Sequence[str]
    executors: Sequence[str]
    error: str | None


class WishJson(TypedDict):
    """The beginning of a request for an effect."""

    key: str
    tick: int
    at: str
    rule: str
    action: str
    reason: str


class DifferenceJson(WishJson):
    """A request that only one of two has: `old` or `new` of a replay, `shadow` or `main` of a shadow."""

    only: str


class ReplayedJson(TypedDict):
    """What one revision requested; rules: by rule, how often it did what; faults: how often each was."""

    revision: str
    ticks: int
    wishes: Sequence[WishJson]
    rules: Mapping[str, Mapping[str, int]]
    faults: Mapping[str, int]


class ReplayJson(TypedDict):
    """Two revisions compared."""

    engine: ReplayedJson
    against: ReplayedJson
    differences: Sequence[DifferenceJson]
    caveats: Sequence[str]


class ShadowFaultJson(TypedDict):
    """What a shadow's rules did wrong, the first time."""

    at: str
    tick: int
    words: str


class ShadowJson(TypedDict):
    """What a shadow requested beside what is in force; wishes: how many of each; ended: why it is over."""

    running: bool
    revision: str
    commit: str
    dirty: Sequence[str]
    rules: Sequence[str]
    since: str
    until: str
    ticks: int
    wishes: Mapping[str, int]
    differences: Sequence[DifferenceJson]
    errors: int
    faults: Sequence[ShadowFaultJson]
    ended: str | None


class DevLoadedJson(TypedDict):
    """`loaded`: what is saved is live."""

    what: str
    rules: Sequence[str]
    projections: Sequence[str]
    files: Sequence[str]
    took_ms: float


class DevRefusedJson(TypedDict):
    """`refused`: what is saved can't be loaded; goes_on: whether the rules before it do."""

    what: str
    why: str
    files: Sequence[str]
    goes_on: bool


class DevSampleJson(TypedDict):
    """`sample`: a watcher of staging brought one."""

    what: str
    watcher: str
    key: str
    at: str
    data: Json


class FaultJson(TypedDict):
    """A fault; whose: `rule:NAME`, `projection:NAME` or `engine`."""

    whose: str
    message: str


class DevErrorJson(FaultJson):
    """`error`: a fault of a watcher or an executor of staging."""

    what: str


class DevRemarkJson(TypedDict):
    """`remark`: anything else that you should know."""

    what: str
    words: str


class DevEffectJson(TypedDict):
    """An effect that staging requests; state: `new`, `open`, `held`, `withheld` or `refused`; why it comes to nothing."""

    key: str
    action: str
    rule: str
    reason: str
    params: Mapping[str, Json]
    state: str
    why: str


class DevTickJson(TypedDict):
    """`tick`: what the rules made of a snapshot; again: they saw it before."""

    what: str
    tick: int
    at: str
    again: bool
    took_ms: float
    rules: Sequence[LayerJson]
    effects: Sequence[DevEffectJson]
    errors: Sequence[FaultJson]
    warnings: Sequence[str]


class VerdictJson(TypedDict):
    """Whether the log is what was written; fault: the first that is not; is_accepted: a person has accepted that;
    engine_fault: what git finds wrong with the engine; anchored: the last row that each anchor file knew."""

    rows: int
    took_ms: int
    fault: str | None
    is_accepted: bool
    notes: Sequence[str]
    engine_fault: str
    anchored: Mapping[str, int]


class SettingsCheckJson(TypedDict):
    """What is wrong with the settings; doubts: by process, why it may be another one than is meant; only without faults."""

    path: str
    faults: Sequence[str]
    doubts: NotRequired[Mapping[str, str]]


class FindingJson(TypedDict):
    """One thing that was looked at; level: ok, warn or fail; remedy: what to do about it."""

    name: str
    level: str
    words: str
    remedy: str


class DoctorJson(TypedDict):
    """What was found, and what was repaired before."""

    findings: Sequence[FindingJson]
    repaired: Sequence[str]


class GarbageJson(TypedDict):
    """What was of no use any more, and went, or would go: `took_ms` and `fault` are only of what was done."""

    samples: int
    ticks: int
    minutes: int
    objects: int
    files: int
    bytes: int
    took_ms: NotRequired[int]
    fault: NotRequired[str]


class RedactedJson(TypedDict):
    """An event that was redacted, and the event that says so; in_memory: a running daemon still has it there."""

    event: str
    by: str
    in_memory: bool


class RedactJson(TypedDict):
    """What was redacted; remains: the files in which the same text can still be read."""

    redacted: Sequence[RedactedJson]
    remains: Sequence[str]
