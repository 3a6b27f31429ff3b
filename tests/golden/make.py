"""Write the golden log of this release: `python -m tests.golden.make`. Never touches the logs of earlier ones."""

import json
from pathlib import Path

from pulse_core import __version__
from pulse_core.agents.events import (
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
from pulse_core.composition import FOLD
from pulse_core.guidance.events import (
    GuidanceAcknowledged,
    GuidanceChanged,
    GuidanceImported,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
    ImportedChange,
)
from pulse_core.guidance.protocol import FILES, ChangeKind, make_event_id
from pulse_core.mcp.events import ClientReads, RuleProposed
from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    AnchorPlaces,
    AnswerDelayed,
    ConditionCleared,
    ConditionRaised,
    DaemonHealthy,
    DamageAccepted,
    Effect,
    EffectAttemptFailed,
    EffectExecuting,
    EffectUnknown,
    EngineChangeStarted,
    EngineDisabled,
    EngineEnabled,
    EngineLoaded,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    EventRedacted,
    GcDone,
    GcRequested,
    LogMatched,
    LogRestored,
    LogVerified,
    ProcessRestartRequested,
    ProcessStopped,
    PromoteRefused,
    PromoteRequested,
    ReloadRequested,
    RestartDelayed,
    RollbackRequested,
    RuleQuarantined,
    SafeModeEntered,
    SafeModeLeft,
    SettingsRejected,
    WorkShed,
)
from pulse_core.model.payload import Payload
from pulse_core.silences.events import SilenceAdded, SilenceRemoved
from pulse_core.tasks.events import (
    ProjectRemoved,
    ProjectSet,
    TaskAcked,
    TaskAssigned,
    TaskBlocked,
    TaskBlockersSet,
    TaskClosed,
    TaskCreated,
    TaskExecuting,
    TaskFailed,
    TaskGivenUp,
    TaskHeartbeat,
    TaskMoved,
    TaskPullRequestOpened,
    TaskReleased,
    TaskResultRefused,
    TaskRetried,
)
from tests.events import event
from tests.simulation.chaos import live

HERE = Path(__file__).parent
SEEDS = (3, 11)
RARE: tuple[Payload, ...] = (
    LogVerified(rows=10, took_ms=1),
    DamageAccepted(what="a bad frame", kept_at="/somewhere"),
    SettingsRejected(faults=("config.toml:1: x: unknown",)),
    ReloadRequested(),
    ProcessStopped(evidence="inactive", expires_us=5),
    RestartDelayed(held_by="a pause of ada", since=5, held_us=2_000_000),
    AnswerDelayed(held_by="a pause of ada", since=5, held_us=2_000_000, lasts=True),
    ErrorReported(message="it failed", repeats=2),
    Effect(action="note", key="rare", reason="golden"),
    EffectExecuting(),
    EffectAttemptFailed(attempt=1, error="no", retry_us=7),
    EffectExecuting(attempt=2),
    EffectUnknown(why="dark"),
    ConditionRaised(evidence="95 % in use", value=0.95, bound=0.9),
    LogMatched(severity="error", lines=("ERROR x",), count=3, place={"offset": 7}),
    SilenceAdded(expires_us=5, why="maintenance"),
    EnginePromoted(previous="abc", watch_us=9),
    ErrorReported(message="ValueError: no", repeats=1),
    ConditionCleared(evidence="70 % in use", value=0.7),
    ConditionRaised(evidence="92 % in use", value=0.92, bound=0.9, state="high"),
    PromoteRequested(previous="", why="better"),
    EngineLoaded(rules=("a",), took_ms=3),
    RuleQuarantined(commit="golden", why="it failed"),
    PromoteRefused(why="it can't be loaded"),
    RollbackRequested(why="no good"),
    EngineChangeStarted(),
    EngineDisabled(why="it does harm"),
    EngineEnabled(),
    DaemonHealthy(),
    SafeModeEntered(crashes=3, left_out=("engine",)),
    SafeModeLeft(why="mended"),
    EngineRolledBack(rejected="abc", why="errors"),
    SilenceRemoved(),
    WorkShed(level=1, measures=("longer intervals",)),
    GcRequested(),
    GcDone(samples=3, took_ms=1),
    LogRestored(source="/backup", made_at=5, rows=9, lost=2),
    EventRedacted(why="it held a password", sha256="0" * 64),
    AnchorPlaces(places=("/elsewhere/anchor", "journal")),
)
"""What a simulated life does not bring, or seldom."""


LEASE = 60_000_000
TASKS: tuple[tuple[str, Payload], ...] = (
    ("app", ProjectSet(repository="/srv/app", members=("ada", "bob"), review=True)),
    ("old", ProjectSet()),
    ("old", ProjectRemoved()),
    ("task_000001", TaskCreated(project="app", title="mend it", prompt="please", labels=("python",))),
    ("task_000002", TaskCreated(project="app", title="then this", blockers=("task_000001",), priority=2)),
    ("task_000003", TaskCreated(project="app", title="a part", parent="task_000002", column="Backlog")),
    ("task_000001", TaskAssigned(agent="ada", why="she knows it")),
    ("task_000001", TaskExecuting(agent="ada", lease_us=LEASE)),  # row 8
    ("task_000001", TaskHeartbeat(token=8)),
    ("task_000001", TaskReleased(token=8, why="silent", expired=True)),
    ("task_000001", TaskExecuting(agent="bob", lease_us=LEASE)),  # row 11
    ("task_000001", TaskResultRefused(token=8, said="task-acked", result="done, but late")),
    ("task_000001", TaskFailed(token=11, error="no disk", retry_us=5)),
    ("task_000001", TaskExecuting(agent="bob", lease_us=LEASE)),  # row 14
    ("task_000001", TaskAcked(token=14, result="done", data={"cost": 0.5})),
    ("task_000003", TaskMoved(column="Test")),
    ("task_000003", TaskBlocked(why="a question")),
    ("task_000003", TaskRetried(why="answered")),
    ("task_000003", TaskGivenUp(why="not needed")),
    ("task_000002", TaskBlockersSet(blockers=("task_000001", "task_000003"))),
    ("task_000001", TaskClosed(why="accepted")),
    ("task_000001", TaskPullRequestOpened(url="https://github.com/ada/app/pull/1")),
)
"""Lives of tasks."""


def started(run: str) -> Payload:
    """A run of this id."""
    return AgentRunStarted(run=run, agent="ada", token=4, pid=5, started=6, workspace="/srv/work")


RUNS: tuple[tuple[str, Payload], ...] = (
    ("app", ProjectSet(repository="/srv/app")),
    ("task_000001", TaskCreated(project="app", title="mend it")),
    ("task_000001", TaskAssigned(agent="ada")),
    ("task_000001", TaskExecuting(agent="ada", lease_us=LEASE)),  # row 4
    ("task_000001", WorkspaceMade(path="/srv/work", branch="feat/task_000001-mend-it")),
    ("task_000001", started("one")),
    ("task_000001", AgentRunStopRequested(run="one", why="it took longer than 1h")),
    ("task_000001", AgentRunEnded(run="one", exit=-15, error="it took longer than 1h", output=9)),
    ("task_000001", TaskFailed(token=4, error="it took longer than 1h", retry_us=0)),
    ("task_000001", AgentRunCleaned(run="one")),
    ("ada", AgentPaused(why="holidays")),
    ("ada", AgentResumed()),
    ("bob", AgentPaused()),
    ("task_000001", TaskExecuting(agent="ada", lease_us=LEASE)),  # row 14
    ("task_000001", started("two")),
    ("task_000001", AgentRunEnded(run="two", exit=0, output=9, usage={"turns": 3})),
    ("task_000001", TaskAcked(token=14, result="done")),
    ("task_000001", TaskClosed()),
    ("task_000001", WorkspaceKept(path="/srv/work", why="2 commits of it are not pushed")),
    ("task_000002", WorkspaceMade(path="/srv/other", branch="")),
    ("task_000002", WorkspaceRemoved()),
    ("task_000003", WorkspaceMade(path="/srv/third", branch="b")),
    ("task_000003", started("three")),
    ("task_000003", AgentRunPaused(run="three", why="it took 51 turns, of at most 50")),
    ("task_000003", AgentRunCounted(run="three", tokens=900)),
    ("two", AgentRunPrinted(text="the end of it")),
    ("cleo", AgentSetAside(why="the agent is not logged in: Please run /login")),
)
"""Runs of agents."""


def guidance_changed(number: int, change: str, file: str, digit: str = "") -> GuidanceChanged:
    """A change of a file; digit: of which its hash is made, none for a deletion."""
    id_ = make_event_id(10**15 + number, f"{number:08x}")
    size = number if digit else None
    return GuidanceChanged(
        number=number,
        event_id=id_,
        change=ChangeKind(change),
        file=file,
        sha256=digit * 64 or None,
        size=size,
    )


EARLIER = tuple(
    ImportedChange(f"evt_{number}", number, ChangeKind.MODIFIED, FILES[number % 4], "a" * 64, 1)
    for number in range(30)
)
GUIDANCE: tuple[tuple[str, Payload], ...] = (
    ("/srv/old", GuidanceImported(number=1, changes=EARLIER)),
    (
        "/srv/old",
        GuidanceInitialized(
            hashes=dict.fromkeys(FILES, "a" * 64),
            initialized_at=5,
            acknowledged="evt_25",
            acknowledged_number=26,
            acknowledged_plan="b" * 64,
            acknowledged_at=6,
        ),
    ),
    ("/srv/app", GuidanceInitialized(hashes=dict.fromkeys(FILES[:3], "a" * 64))),
    ("/srv/app", GuidanceWatched()),
    ("/srv/old", GuidanceWatched()),
    ("/srv/old", GuidanceUnwatched()),
    ("/srv/app", guidance_changed(1, "modified", "guidance.md", "b")),
    ("/srv/app", guidance_changed(2, "deleted", "constraints.md")),
    ("/srv/app", guidance_changed(3, "created", "plan.md", "c")),
    ("/srv/app", guidance_changed(3, "modified", "plan.md", "d")),  # somebody else was quicker
    ("/srv/app", GuidanceAcknowledged(event_id=make_event_id(10**15 + 1, "00000001"))),  # it is stale
    ("/srv/app", GuidanceAcknowledged(event_id=make_event_id(10**15 + 2, "00000002"), plan_sha256="c" * 64)),
    *(
        ("/srv/app", guidance_changed(number, "modified", "task.md", "bc"[number % 2]))
        for number in range(4, 30)
    ),
    ("/srv/app", guidance_changed(30, "created", "constraints.md", "e")),
)
"""Guidance of a project that another program had before, and of a new one."""


def folded(events: list[Event]) -> dict[str, object]:
    """Every projection of these events, as plain JSON."""
    state = FOLD(FOLD.start, events)
    return {name: json.loads(text) for name, text in FOLD.dump(state).items()}


def keep(name: object, events: list[Event]) -> None:
    """Write a log and what it adds up to."""
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (HERE / f"{__version__}-{name}.events.jsonl").write_text(lines)
    (HERE / f"{__version__}-{name}.folded.json").write_text(json.dumps(folded(events), indent=1) + "\n")


MCP: tuple[Payload, ...] = (
    *(ClientReads(reads=number) for number in range(1, 21)),
    RuleProposed(rule="quiet", commit="c" * 40, gates=("compiles passed", "types failed: no")),
)
"""A client over MCP."""


def main() -> None:
    """Live two lives of bad luck, those of some tasks, runs of agents and guidance, and keep their logs."""
    keep("tasks", [event(number, payload, subject) for number, (subject, payload) in enumerate(TASKS, 1)])
    keep("agents", [event(number, payload, subject) for number, (subject, payload) in enumerate(RUNS, 1)])
    keep(
        "guidance", [event(number, payload, subject) for number, (subject, payload) in enumerate(GUIDANCE, 1)]
    )
    keep("mcp", [event(number, payload, "ada") for number, payload in enumerate(MCP, 1)])
    for seed in SEEDS:
        events = live(seed, deeds=40).log.events
        wish = len(events) + 7  # the effect among the rare ones, which those after it are about
        for payload in RARE:
            subject = (
                f"golden-{wish}" if len(events) >= wish else "rare" if payload.kind == "effect" else "gateway"
            )
            events.append(event(len(events) + 1, payload, subject, f"golden-{len(events) + 1}"))
        events.append(event(len(events) + 1, ProcessRestartRequested(why="new credentials"), "gateway"))
        keep(seed, events)


if __name__ == "__main__":
    main()
