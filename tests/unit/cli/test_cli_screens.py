"""Tables and screens at the widths of terminals, and in a pipe, as they are kept in `screens/`.

`status`, `incidents` and `why` are those of a real daemon's log, `screens/story.events.jsonl`: a worker that can not start,
two processes that are killed in a pause, and one that is killed while no daemon runs. The others are made up, with numbers
as large as they come.

`python -m tests.unit.cli.test_cli_screens` writes them anew: look at what changed before you keep it.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from rich.console import Console, Group, RenderableType
from rich.text import Text

from pulse_core.app.compute_status import Beat, compute_status
from pulse_core.app.series import Point, Series
from pulse_core.app.why import why
from pulse_core.composition import FOLD
from pulse_core.daemon.delays import Delays
from pulse_core.model.event import Draft, Event
from pulse_core.model.home_status import DaemonStatus
from pulse_core.model.kinds import RestartDelayed
from pulse_core.model.moment import Moment
from pulse_core.model.payload import parse
from pulse_core.model.verdict import Verdict
from pulse_core.projections.incidents import IncidentFold
from pulse_core.projections.state import Snapshot
from pulse_core.settings.settings import Settings
from pulse_core.tasks.projection import PendingTasks
from pulse_core.tasks.task import Project, Status, TaskState
from tests.unit.app.home_scene import SECOND, START, Scene
from upulse_cli.capabilities.agents.views import agent_table, run_table
from upulse_cli.capabilities.silences.views import tables as silence_tables
from upulse_cli.capabilities.tasks.views import boards, project_table, task_table
from upulse_cli.commands.vitals import table as vitals_table
from upulse_cli.output import draw
from upulse_cli.views.effects import table as effect_table
from upulse_cli.views.engine import history
from upulse_cli.views.explain import tree as explanation
from upulse_cli.views.incidents import tree as incident_tree
from upulse_cli.views.process import report
from upulse_cli.views.profile import tables as profile_tables
from upulse_cli.views.status import home_table, overview, process_table
from upulse_cli.views.table import PlainTable
from upulse_cli.views.why import tree as why_tree

KEPT = Path(__file__).with_name("screens")
WIDTHS = (60, 80, 120)
AT = "2026-01-31T08:15:00.000000Z"
ID = "01a20053-8ff0-7287-b5fe-00bbb988c3f5"
LONG = "dead after 5 restarts: process 31940 exited with status 3; next try in 5 min"
PROCESSES: list[dict[str, Any]] = [
    {"name": "gateway-of-the-agents", "state": "up", "pid": 30865, "since": None, "restarts": 0,
     "why": "process 30865 is alive"},
    {"name": "worker", "state": "flapping", "pid": None, "since": None, "restarts": 1_205, "why": LONG},
]  # fmt: skip
GUARDED = Settings.model_validate(
    {
        "process": [
            {"name": "gateway-of-the-agents", "start": ["sleep", "1000011"]},
            {"name": "web", "start": ["sleep", "1000012"], "depends_on": ["gateway-of-the-agents"]},
            {"name": "worker", "start": ["sh", "-c", "exit 3"], "restart": {"max": 3}},
        ],
        "check": [{"name": "backup", "file": "/srv/backup", "age_over": "1h"}],
    }
)
PROCESS = {
    **PROCESSES[1], "pid": 31940, "since": None, "last_lines": ["it failed:\n no space"],
    "tree": {"memory": 3 << 30, "cpu_us": 630_000_000, "threads": 12, "descriptors": 40, "processes": [
        {"pid": 31940, "memory": 3 << 30, "cpu_us": 630_000_000, "threads": 12, "descriptors": 40, "name": "bash"}]},
    "events": [
        {"at": AT, "kind": "process-died", "subject": "worker", "actor": "pulse", "data": {"evidence": LONG}},
        {"at": AT, "kind": "process-restart-requested", "subject": "worker", "actor": "ada", "data": {"why": "new model"}},
    ],
    "events_more": True,
}  # fmt: skip
EFFECTS = [
    {"id": ID, "at": AT, "state": "acked", "took_ms": 13.4, "key": "restart-process:gateway-of-the-agents",
     "reason": "gateway-of-the-agents is not running yet", "actor": "pulse"},
    {"id": ID, "at": AT, "state": "failed", "took_ms": 630_000, "key": "run-command:tidy",
     "reason": "line one\nline two", "actor": "root"},
]  # fmt: skip
HOMES = [{"name": "staging", "state": "running", "pid": 4711, "since": None, "home": "/home/somebody/.upulse-staging",
          "unit": "upulse-staging.service"}]  # fmt: skip
TURNS = [{"commit": "d7e227fb58b4aa", "at": AT, "kind": "rollback", "by": "pulse", "errors": 3, "quarantined": ["tidy"],
          "why": "3 errors in 10 minutes, more than before"}]  # fmt: skip
RUNS = [{"task": "T-12", "agent": "claude", "pid": 30866, "since": AT, "output": 1 << 21, "memory": 3 << 29,
         "cpu_s": 83.25, "stop": "", "paused": "", "unlimited": "", "workspace": "/home/somebody/work/T-12",
         "ended": False}]  # fmt: skip
AGENTS = [{"name": "claude", "kind": "claude", "labels": ["python", "docs"], "projects": [], "tasks": ["task_2vxj4c7na8"],
           "concurrency": 2, "unavailable": "its program is not logged in: run claude, then /login"}]  # fmt: skip
SILENCES = {
    "silences": [{"id": ID, "match": "notify:*the-gateway*", "ends": AT, "left_s": 3_600, "by": "ada", "why": "new cables"}],
    "recurring": [{"match": "*", "days": ["sat", "sun"], "at": "08:15", "for": "2h", "left_s": 0, "active": False,
                   "next": AT, "why": "backups of the data base"}],
}  # fmt: skip
PROFILED = {
    "since": AT, "ticks": {"calls": 1_205},
    "watchers": [{"name": "system-resource", "interval_s": 5, "looks": 12_345, "failures": 3, "p50_ms": 1.25, "p99_ms": 12.5,
                  "cpu": 0.00123, "over_s": 61_725}],
    "helpers": [{"module": "pulse_adapters.network.probe", "pid": 30867, "cpu": 0.0004, "rss": 31 << 20}],
    "rules": [{"rule": "process_watchdog", "calls": 1_205, "errors": 0, "p50_us": 310, "p99_us": 2_750, "share": 0.713}],
}  # fmt: skip
EXPLAINED = {
    "at": AT, "tick": 1_205, "seq": 31_940, "next_tick_ms": 5_000,
    "caveats": ["the engine's rules were not asked: it is starting"],
    "rules": [
        {"rule": "process_watchdog", "outcome": "added", "took_us": 310, "notes": ["worker: due: dead, down for 10.5 min"]},
        {"rule": "tidy_the_cache", "outcome": "passed", "took_us": 12_500, "notes": []},
    ],
    "effects": [{"key": "restart-process:worker", "open": True, "rule": "process_watchdog", "reason": "worker is dead"}],
    "withheld": [{"key": "notify:cache", "rule": "tidy_the_cache", "why": "told already 12 min ago; again in 48 min"}],
}  # fmt: skip
CREATED = Moment(START, "boot", 0)
TASKS = PendingTasks(
    {one.id: one for one in (
        TaskState("task_2vxj4c7na8", "app", "Mend the gateway, which forgets its sessions at each deploy", CREATED, "ada",
                  status=Status.EXECUTING, agent="claude", column="In progress", priority=2),
        TaskState("task_zzesbc7qv1", "app", "Write down why", CREATED, "ada", waits_for=("task_2vxj4c7na8",)),
    )},
    {},
    {"app": Project(repository="/home/somebody/src/app", members=("ada", "bob"))},
)  # fmt: skip


@cache
def story() -> tuple[dict[str, Any], Sequence[Mapping[str, Any]], Mapping[str, Any]]:
    """The status, the incidents and why the worker is as it is, six seconds after the last event of the log."""
    rows = [Event(*json.loads(line)) for line in (KEPT / "story.events.jsonl").read_text().splitlines()]
    now = rows[-1].moment.plus(6_000_000)
    state, fold, delays = FOLD(FOLD.start, rows), IncidentFold(), Delays()
    for row in rows:
        fold.take(row)
    delays.after(Snapshot(0, rows[0].moment, GUARDED, {}, FOLD.start), Verdict(), ())
    delays.after(Snapshot(1, rows[-1].moment, GUARDED, {}, state), Verdict(), ())
    daemon: DaemonStatus = {"state": "running", "pid": 4711, "since": None, "version": "0.1.0"}
    status = compute_status(GUARDED, state, now, Beat(29, (520, 6_550)), daemon, {}, now)
    for one in status["processes"]:
        one["since"] = None  # how long ago that is would differ
        one["held"] = delays.of(RestartDelayed, one["name"])
    with TemporaryDirectory() as directory:
        scene = Scene(Path(directory))
        scene.settings, scene.daemon.answers = GUARDED, status
        drafts = [Draft(parse(row.kind, json.loads(row.data)), row.subject, row.cause, row.id, row.actor, row.moment)
                  for row in rows]  # fmt: skip
        scene.append(*drafts)
        scene.clock.second = (now.at - START) // SECOND
        told = why(scene.home, "worker").spelled()
    told["about"]["held_since"] = None
    return dict(status), [one.spelled() for one in fold.state.at(now)], told


def screens(width: int) -> Iterator[tuple[str, RenderableType]]:
    """Each screen with its command."""
    status, incidents, told = story()
    yield "status", overview(status)
    yield "process list", process_table(PROCESSES)
    yield "process show", report(PROCESS)
    yield "effect list", effect_table(EFFECTS)
    yield "incidents", incident_tree(incidents, "in the last 24h")
    yield "why worker", why_tree(told)
    yield "instances", home_table(HOMES)
    yield "engine log", history(TURNS)
    yield "run list", run_table(RUNS)
    yield "agents list", agent_table(AGENTS)
    yield "explain", explanation(EXPLAINED)
    yield "vitals", vitals_table(list(sensed()), width)
    yield "profile", profile_tables(PROFILED)
    yield "silence list", silence_tables(SILENCES)
    yield "task list", task_table(list(TASKS.tasks.values()), CREATED)
    projects = [{"name": name, "open": 2, **asdict(one)} for name, one in TASKS.projects.items()]
    yield "project list", project_table(projects)


def sensed() -> Iterator[Series]:
    """Numbers of several units, with their courses."""
    for name, values in {
        "system-resource.memory": (0.25, 0.5, 0.75),
        "process-usage.gateway-of-the-agents.memory": (1 << 20, 3 << 30, 84 << 30),
        "process-alive.gateway-of-the-agents.pid": (30_865.0,),
    }.items():  # fmt: skip
        yield Series(name, [Point(START + at * SECOND, one, one, one) for at, one in enumerate(values)])


def on_terminal(width: int) -> str:
    """All screens on a terminal as wide as this."""
    console = Console(file=StringIO(), width=width, markup=False, highlight=False, emoji=False)
    for command, screen in screens(width):
        console.print(Group(Text(f"$ upulse {command}"), screen, Text()))
    assert isinstance(console.file, StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def in_pipe() -> str:
    """All screens as another program reads them."""
    with redirect_stdout(StringIO()) as out:
        for command, screen in (*screens(160), ("board", boards(TASKS, "", CREATED))):
            print(f"$ upulse {command}")
            draw(screen)
            print()
    return out.getvalue()


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.setenv("TZ", before) if before else monkeypatch.delenv("TZ")
    time.tzset()


@pytest.mark.parametrize("width", WIDTHS)
def test_screens_on_a_terminal_are_those_that_are_kept(width: int) -> None:
    assert on_terminal(width) == (KEPT / f"{width}.txt").read_text()


def test_screens_in_a_pipe_are_those_that_are_kept() -> None:
    assert in_pipe() == (KEPT / "pipe.txt").read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_column_and_no_number_is_lost_at_any_width(width: int) -> None:
    drawn = on_terminal(width)
    for words in (
        "restarts",
        "why",
        "30865",
        "1205",
        "4711",
        "10.5 min",
        "descriptors",
        "memory",
        "note",
        "unit",
    ):
        assert words in drawn
    assert "\u2026" not in drawn.replace("\u202688c3f5", "").replace("\u2026b988c3f5", "")


def test_a_row_in_a_pipe_is_one_line() -> None:
    (row,) = (line for line in in_pipe().splitlines() if line.startswith("worker  ") and "1205" in line)
    assert row.endswith(LONG)


def test_where_columns_would_be_left_out_each_row_is_a_block() -> None:
    table = PlainTable(
        "watcher", "every", "looks", "p50", "p99", "CPU", right=("every", "looks", "p50", "p99", "CPU")
    )
    table.line("system-resource", "5.0 s", 12_345, "1.25 ms", "12.50 ms", "0.123%")
    table.line("process-alive", "5.0 s", 12_345, None, "12.50 ms", "0.123%")
    console = Console(width=40, record=True, file=StringIO())
    console.print(table)
    lines = console.export_text().splitlines()
    assert [line.split() for line in lines[:6]] == [
        ["watcher", "system-resource"], ["every", "5.0", "s"], ["looks", "12345"], ["p50", "1.25", "ms"],
        ["p99", "12.50", "ms"], ["CPU", "0.123%"],
    ]  # fmt: skip
    assert lines[6].strip() == ""
    assert "process-alive" in lines[7]


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    KEPT.mkdir(exist_ok=True)
    for size in WIDTHS:
        (KEPT / f"{size}.txt").write_text(on_terminal(size))
    (KEPT / "pipe.txt").write_text(in_pipe())
    sys.exit()
