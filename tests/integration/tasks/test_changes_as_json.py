"""`--json` of commands that change a task, a project or an agent: what each of these is afterwards."""

import asyncio
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.agents.events import AgentRunPaused
from pulse_core.model.event import Draft, Event
from tests.integration.cli.cli_home import CliHome
from tests.long_form import sampled
from upulse_cli.capabilities.agents.commands import agents
from upulse_cli.capabilities.tasks.commands import tasks
from upulse_cli.capabilities.tasks.projects import projects
from upulse_cli.options import ChangeCommand

CLAIM = "task claim TASK --agent ada"
CASES: tuple[tuple[str, tuple[str, ...], Mapping[str, Any]], ...] = (
    ("project add other --column Now", (), {"name": "other", "columns": ["Now"], "open": 0}),
    ("task add app Title --label python", (), {"title": "Title", "status": "pending", "labels": ["python"]}),
    ("task claim TASK --agent ada", (), {"status": "executing", "agent": "ada", "attempts": 1}),
    ("task claim TASK --agent ada", (CLAIM,), {"status": "executing", "agent": "ada", "attempts": 1}),
    ("task assign TASK ada", (), {"status": "assigned", "agent": "ada"}),
    ("task start TASK", ("task assign TASK ada",), {"status": "executing", "agent": "ada"}),
    ("task heartbeat TASK --token TOKEN", (CLAIM,), {"status": "executing"}),
    ("task ack TASK --result done", (CLAIM,), {"status": "acked", "result": "done"}),
    ("task close TASK", (), {"status": "closed", "column": "Done"}),
    ("task give-up TASK --why no", (), {"status": "given-up", "error": "no"}),
    ("task release TASK", (CLAIM,), {"status": "pending", "token": None}),
    ("task block TASK why", (), {"status": "blocked", "error": "why"}),
    ("task retry TASK", ("task block TASK why",), {"status": "pending", "error": None}),
    ("task move TASK Review", (), {"column": "Review"}),
    ("task deps TASK --none", (), {"blockers": []}),
    ("agents pause ada", (), {"name": "ada", "unavailable": "paused by a person"}),
    ("agents resume ada", ("agents pause ada",), {"name": "ada", "unavailable": None}),
)
ELSEWHERE = {"project remove", "task pull-request", "agents worktrees"}
"""The first leaves nothing; the others need a daemon, and are with the worktrees."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> CliHome:
    made = CliHome(Path(tmp_path_factory.mktemp("changes")) / "home")
    made.upulse("init", "--no-engine")
    made.configure('[[agent]]\nname = "ada"\ncommand = ["/bin/cat"]')
    made.upulse("project", "add", "app")
    return made


@pytest.mark.parametrize(("command", "before", "expected"), sampled(CASES, 3), ids=lambda one: str(one)[:40])
def test_a_change_is_told_as_json(
    home: CliHome, command: str, before: tuple[str, ...], expected: Mapping[str, Any]
) -> None:
    task, token = home.upulse("task", "add", "app", "Mend it").out.strip(), "0"

    def words(one: str) -> list[str]:
        return one.replace("TASK", task).replace("TOKEN", token).split()

    for one in before:
        token = home.upulse(*words(one)).out.strip() or token
    said = home.upulse(*words(command), "--json").json
    if before == (command,):  # said twice, it is one claim
        assert said["token"] == int(token)
    assert {name: said[name] for name in expected} == expected
    if "TASK" in command:
        shown = home.upulse("task", "show", task, "--json").json
        story = {"lease_left_s": 0, "events": shown["events"], "held": None}
        assert {**shown, "lease_left_s": 0} == {**said, **story}
    board = home.upulse("board", "app", "--json").json
    assert task in {one["id"] for some in board[0]["columns"].values() for one in some}


def test_a_task_is_shown_whose_run_was_held_for_what_is_redacted(home: CliHome) -> None:
    task = home.upulse("task", "add", "app", "Mend it").out.strip()

    async def hold() -> Event:
        objects, clock = FileObjects(home.path / "objects"), SystemClock()
        async with SqliteEventLog.open(home.path / "events.db", clock=clock, objects=objects) as log:
            (held,) = await log.append(Draft(AgentRunPaused(run="run_0000000000", why="a secret"), task))
            return held

    held = asyncio.run(hold())
    assert home.upulse("task", "show", task, "--json").json["held"] == "a secret"
    home.upulse("redact", held.id, "--why", "a secret", "--yes")
    assert home.upulse("task", "show", task, "--json").json["held"] == "(redacted)"


def test_a_task_is_closed_with_its_parts_and_theirs(home: CliHome) -> None:
    whole, other = (home.upulse("task", "add", "app", title).out.strip() for title in ("whole", "other"))
    part = home.upulse("task", "add", "app", "part", "--part-of", whole).out.strip()
    held = home.upulse("task", "add", "app", "part of it", "--part-of", part).out.strip()
    home.upulse("task", "claim", held, "--agent", "ada")
    said = home.upulse("task", "close", whole, "--parts", "--why", "enough", "--json").json
    assert (said["id"], said["status"]) == (whole, "closed")
    standing = {one["id"]: one["status"] for one in home.upulse("task", "list", "--ended", "--json").json}
    assert [standing[one] for one in (whole, part, held, other)] == ["closed", "closed", "closed", "pending"]


def test_a_project_is_shown_without_python_s_signs(home: CliHome) -> None:
    shown = home.upulse("project", "show", "app").out
    assert "Backlog, Ready, In progress" in shown
    assert "members" not in shown
    home.upulse("project", "add", "two", "--member", "ada", "--member", "bob")
    home.upulse("project", "add", "two", "--review")
    assert re.search(r"members +ada, bob *\nreview +yes *\n", home.upulse("project", "show", "two").out)
    words = home.upulse("project", "add", "two", "--base=-x", code=1).err
    assert "base: must be letters, digits and '._/-', at most 200, no '-' first" in words
    words = home.upulse("project", "add", "two", "--repository", "a\nb", code=1).err
    assert "repository: must be an absolute path, at most 1,001 characters of one line" in words


def test_a_board_has_one_line_for_each_task_in_a_pipe(home: CliHome) -> None:
    title = "what is longer than any column of a board: " + "and longer " * 14
    task = home.upulse("task", "add", "app", title).out.strip()
    (line,) = [one for one in home.upulse("board", "app").out.splitlines() if task[-10:] in one]
    assert title.strip() in line


BYTES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00a" * 100_000, "what is on stdin is no UTF-8 text; convert it (iconv), or name a file"),
    ("é".encode() * 8_001, "what is on stdin has more than {most} characters; put the rest in a file"),
    ("é".encode() * 4_000, ""),
    (b"", ""),
)


@pytest.mark.parametrize(("given", "words"), BYTES, ids=("bytes", "long", "text", "empty"))
def test_a_text_on_stdin_is_taken_or_refused_with_what_would_work(
    home: CliHome, monkeypatch: pytest.MonkeyPatch, given: bytes, words: str
) -> None:
    task = home.upulse("task", "add", "app", "Mend it").out.strip()
    home.upulse("task", "claim", task, "--agent", "ada")
    commands = (("task", "add", "app", "x", "--prompt"), ("task", "ack", task, "--result"))
    for (*command, option), most, name in zip(
        commands, ("8,000", "4,000"), ("prompt", "result"), strict=True
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8", "surrogateescape"))
        said = home.upulse(*command, option, "-", "--json", code=2 if words else 0)
        if words:
            assert words.format(most=most) in said.err
            assert option in said.err
        else:
            assert (said.json[name] or "") == given.decode()


def test_a_project_whose_repository_is_not_there_is_told_so_at_once(home: CliHome, tmp_path: Path) -> None:
    said = home.upulse("project", "add", "later", "--repository", str(tmp_path))
    assert f"{tmp_path} is no git repository yet" in said.err
    (tmp_path / ".git").mkdir()
    assert "no git repository" not in home.upulse("project", "add", "later", "--review").err
    assert (
        "no git repository" not in home.upulse("project", "add", "later", "--repository", str(tmp_path)).err
    )


def test_every_command_that_changes_something_is_among_these() -> None:
    groups = {"task": tasks, "project": projects, "agents": agents}
    known = {
        f"{name} {one.name or getattr(one.callback, '__name__', '')}"
        for name, group in groups.items()
        for one in group.registered_commands
        if one.cls is ChangeCommand
    }
    assert known - ELSEWHERE == {" ".join(command.split()[:2]) for command, _, _ in CASES}
