"""The contract with programs: what each command that has `--json` prints.

Types of what capabilities print are here where they are too many for the folders of those.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from docs.json_types import (
    DaemonPageJson,
    DevErrorJson,
    DevLoadedJson,
    DevRefusedJson,
    DevRemarkJson,
    DevSampleJson,
    DevTickJson,
    DoctorJson,
    EffectPageJson,
    EventJson,
    ExplanationJson,
    GarbageJson,
    InstanceJson,
    PluginJson,
    ProcessPageJson,
    PromoteJson,
    RedactJson,
    ReplayJson,
    SeriesJson,
    SettingsCheckJson,
    ShadowJson,
    VerdictJson,
    WhyJson,
)
from pulse_core.app.backup import Backup, Restored
from pulse_core.model.home_status import GuardedProcessStatus, HomeStatus
from pulse_core.model.json_answers import (
    EffectJson,
    EngineStatusJson,
    IncidentJson,
    ProfileJson,
    TurnJson,
    TurnPageJson,
)
from pulse_core.model.json_types import Json
from pulse_core.settings.settings import Settings


class AgentJson(TypedDict):
    """An agent; tasks: the ids of those that it holds; unavailable: why it gets none."""

    name: str
    kind: str
    labels: Sequence[str]
    columns: Sequence[str]
    projects: Sequence[str]
    concurrency: int
    model: str | None
    tasks: Sequence[str]
    unavailable: str | None


class PresenceJson(TypedDict):
    """Whether an agent's program is there and logged in, in words, too."""

    agent: str
    is_well: bool
    words: str


class RunJson(TypedDict):
    """A run of an agent.

    output: bytes that it has printed; memory: bytes; quiet_s: since it last printed; unlimited: why it has no limits;
    paused, stop: why it is, or is to end.
    """

    run: str
    task: str
    agent: str
    workspace: str
    output: int
    memory: int
    turns: int
    tokens: int
    pid: int
    since: str
    took_s: float
    quiet_s: float
    cpu_s: float
    unlimited: str | None
    paused: str | None
    stop: str | None
    ended: str | None


class LabelStatsJson(TypedDict):
    """How an agent has done with tasks of one label."""

    closed: int
    failed: int


class AgentStatsJson(TypedDict):
    """How an agent has done so far."""

    name: str
    assigned: int
    acked: int
    closed: int
    failed: int
    given_up: int
    consecutive_failures: int
    average_s: float | None
    labels: Mapping[str, LabelStatsJson]


class WorktreeJson(TypedDict):
    """The folder of a task; kept: why it stays although the task has ended."""

    task: str
    path: str
    kept: str | None


class RunOutputJson(TypedDict):
    """A piece of what a run has printed."""

    task: str
    run: str
    text: str


class ProjectJson(TypedDict):
    """A project; open: how many tasks are."""

    name: str
    repository: str | None
    base: str
    columns: Sequence[str]
    members: Sequence[str]
    review: bool
    open: int


class TaskJson(TypedDict):
    """A task.

    A run that may not enter the home is told of another task than its own no more than the `id`. blockers: tasks to close
    before; parts: those of its parts that are open; waits_for: both that are not closed; stuck_on: those of them that don't
    go on; token: of the claim; error: of the last attempt, or why it is blocked or given up.
    """

    id: str
    project: str
    title: str
    prompt: str
    column: str
    priority: int
    attempts: int
    parent: str | None
    by: str
    data: Mapping[str, Json]
    labels: Sequence[str]
    blockers: Sequence[str]
    waits_for: Sequence[str]
    stuck_on: Sequence[str]
    parts: Sequence[str]
    agent: str | None
    token: int | None
    result: str | None
    error: str | None
    pull_request: str | None
    status: str
    lease_left_s: float | None
    due: str | None
    created: str
    since: str | None


class TaskPageJson(TaskJson):
    """A task with its events; held: why its run is paused."""

    held: str | None
    events: Sequence[EventJson]


class BlockerJson(TypedDict):
    """A task to close before, and whether it is open."""

    id: str
    open: bool


class BoardJson(TypedDict):
    """A project with the tasks of each column."""

    name: str
    repository: str | None
    base: str
    columns: Mapping[str, Sequence[TaskJson]]
    members: Sequence[str]
    review: bool
    open: int


class ReplanJson(TypedDict):
    """Whether an agent has to replan, as `pulse_should_interrupt` answers."""

    needs_replan: bool
    latest_event_id: str | None
    has_new_events: bool
    changed_files: Sequence[str]
    pending_replan_event_id: str | None
    pending_replan_files: Sequence[str]
    last_acknowledged_event_id: str | None
    last_acknowledged_plan_sha256: str | None
    reason: str


class GuidedProjectJson(ReplanJson):
    """A project with guidance; watched: by the daemon; events: how many."""

    watched: bool
    events: int


class SilenceJson(TypedDict):
    """A silence that a person added."""

    id: str
    match: str
    since: str
    ends: str
    left_s: float
    by: str
    why: str


RecurringSilenceJson = TypedDict(
    "RecurringSilenceJson",
    {
        "match": str,
        "days": Sequence[str],
        "at": str,
        "for": str,
        "active": bool,
        "left_s": float,
        "next": str,
        "why": str,
    },
)
RecurringSilenceJson.__doc__ = "A silence of the settings; next: when it begins the next time."


class SilencesJson(TypedDict):
    """What is held back now, and what comes again."""

    silences: Sequence[SilenceJson]
    recurring: Sequence[RecurringSilenceJson]


class Lines(NamedTuple):
    """An answer of many lines, each JSON of this kind."""

    kind: Any


DEV = DevLoadedJson | DevRefusedJson | DevTickJson | DevSampleJson | DevErrorJson | DevRemarkJson
ANSWERS: Mapping[str, Any] = {
    "agents doctor": Sequence[PresenceJson],
    "agents list": Sequence[AgentJson],
    "agents pause": AgentJson,
    "agents ps": Sequence[RunJson],
    "agents resume": AgentJson,
    "agents stats": Sequence[AgentStatsJson],
    "agents worktrees": Sequence[WorktreeJson],
    "backup": Backup,
    "board": Lines(Sequence[BoardJson]),
    "config check": SettingsCheckJson,
    "config show": Settings,
    "daemon status": DaemonPageJson,
    "deploy": PromoteJson,
    "dev": Lines(DEV),
    "doctor": DoctorJson,
    "effect list": Sequence[EffectJson],
    "effect show": EffectPageJson,
    "engine disable": EventJson,
    "engine enable": EventJson,
    "engine log": Sequence[TurnJson],
    "engine show": TurnPageJson,
    "engine status": EngineStatusJson,
    "events": Lines(EventJson),
    "explain": ExplanationJson,
    "gc": GarbageJson,
    "guidance list": Mapping[str, GuidedProjectJson],
    "guidance status": ReplanJson,
    "incidents": Sequence[IncidentJson],
    "instances": Sequence[InstanceJson],
    "pause": EventJson,
    "plugins": Sequence[PluginJson],
    "process list": Sequence[GuardedProcessStatus],
    "process show": ProcessPageJson,
    "profile": ProfileJson,
    "project add": ProjectJson,
    "project list": Sequence[ProjectJson],
    "project remove": None,
    "project show": ProjectJson,
    "promote": PromoteJson,
    "redact": RedactJson,
    "replay": ReplayJson,
    "restore": Restored,
    "resume": EventJson,
    "rollback": EventJson | None,
    "run logs": Lines(RunOutputJson),
    "shadow report": ShadowJson,
    "silence list": SilencesJson,
    "status": HomeStatus,
    **{
        f"task {name}": TaskJson
        for name in (
            "ack", "add", "assign", "block", "claim", "close", "give-up", "heartbeat", "move", "pull-request", "release",
            "retry", "start",
        )
    },
    "task deps": TaskJson | Sequence[BlockerJson],
    "task list": Sequence[TaskJson],
    "task show": TaskPageJson,
    "verify": VerdictJson,
    "vitals": Sequence[SeriesJson],
    "why": WhyJson,
}  # fmt: skip
"""By the words of the command: the type of what it prints, or of each line."""
