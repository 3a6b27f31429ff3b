"""A daemon, its command line and a program that stands for an agent: from a task to what came of it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.workers.proc import start_time_of
from tests.integration.agents import fake_gh
from tests.integration.agents.agent_home import settings
from tests.integration.cli.cli_home import CliHome, eventually


def git(at: Path, *words: str) -> str:
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    done = subprocess.run(
        ("git", "-C", str(at), *named, *words), capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CliHome]:
    """A home whose daemon runs, with an agent, and a project with a repository."""
    monkeypatch.setenv("KEPT_BACK", "1")
    monkeypatch.setenv("PATH", f"{fake_gh.install(tmp_path / 'bin')}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GH", str(tmp_path / "pull-requests.json"))
    home, repository = CliHome(tmp_path / "home"), tmp_path / "repository"
    subprocess.run(("git", "init", "-q", "-b", "main", str(repository)), check=True, timeout=60)
    git(repository, "commit", "-q", "--allow-empty", "-m", "x")
    home.upulse("init", "--no-engine")
    home.configure(settings(tmp_path))
    home.start_daemon()
    try:
        home.upulse("project", "add", "app", "--repository", str(repository))
        yield home
    finally:
        for run in home.upulse("agents", "ps", "--json").json:
            with suppress(ProcessLookupError):
                os.kill(run["pid"], signal.SIGKILL)
        home.end_everything()


def task(home: CliHome, id_: str) -> dict[str, Any]:
    return dict(home.upulse("task", "show", id_, "--json").json)


def test_a_task_is_done_by_its_agent_whatever_becomes_of_the_daemon_meanwhile(
    home: CliHome, tmp_path: Path
) -> None:
    id_ = home.upulse("task", "add", "app", "Mend it", "--prompt", "wait, with a helper").out.strip()

    def live() -> dict[str, Any] | None:
        return next(iter(home.upulse("agents", "ps", "--json").json), None)

    run = eventually(live, "the agent to begin")
    pid = home.status()["daemon"]["pid"]
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: start_time_of(pid) is None, "the daemon to be dead")
    home.start_daemon()
    workspace = Path(run["workspace"])
    listed = f"{workspace}: its task has not ended"
    eventually(lambda: listed in home.upulse("agents", "worktrees").out, "the worktree to be listed")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "mend it")
    (workspace / "go").touch()
    eventually(lambda: task(home, id_)["status"] == "closed", "the task to be closed")

    said = task(home, id_)
    told = json.loads(said["result"])
    assert told == {
        "PULSE_TASK": id_,
        "PULSE_AGENT": "ada",
        "KEPT_BACK": None,
        "without": "a run of an agent is answered if it says its token, that of PULSE_TOKEN",
        "wrong": f"process {run['pid']} of uid {os.getuid()} has said a token that is no run's, or was long ago",
        "status": "a run of an agent may append and ask for its state, which is its task; not status",
        "title": "Mend it",
        "beat": "ada",
    }
    assert said["data"]["num_turns"] == 2
    assert [one["kind"] for one in said["events"]].count("agent-run-started") == 1
    token = (home.path / "runs" / run["run"] / "token").read_text()
    assert run["run"] in token
    for said_aloud in (home.upulse("events", "--json").out, home.upulse("config", "show").out):
        assert token not in said_aloud
    assert "a token that is no run's" in home.upulse("events", "--kind", "error", "--json").out
    printed = home.as_process("run", "logs", id_, "--follow").out
    assert "a warning" in printed
    assert '"subtype": "success"' in printed
    pieces = home.as_process("run", "logs", id_, "--json", "--follow").lines
    assert {(one["task"], one["run"]) for one in pieces} == {(id_, run["run"])}
    assert "".join(one["text"] for one in pieces) == printed

    helper = int((workspace / "helper").read_text())
    eventually(lambda: start_time_of(helper) is None, "the helper to be ended")
    kept = eventually(
        lambda: [one for one in task(home, id_)["events"] if one["kind"] == "workspace-kept"],
        "the worktree to be looked at",
    )
    assert kept[0]["data"]["why"] == "it has 2 files not committed"
    (commit,) = task(home, id_)["data"]["commits"]
    assert commit.endswith(" mend it")
    assert commit in home.upulse("task", "show", id_).out
    assert "not committed" in home.upulse("agents", "worktrees").out
    (folder,) = home.upulse("agents", "worktrees", "--json").json
    assert (folder["task"], folder["kept"]) == (id_, kept[0]["data"]["why"])
    assert "worktrees 1 worktree of tasks that have ended" in home.upulse("status").out
    git(tmp_path / "repository", "merge", "-q", "--ff-only", git(workspace, "branch", "--show-current"))
    asked = ("task", "pull-request", id_, "--draft")
    assert "is not pushed; push it first" in home.upulse(*asked, code=1).err
    subprocess.run(("git", "init", "-q", "--bare", str(tmp_path / "remote")), check=True, timeout=60)
    git(workspace, "remote", "add", "origin", str(tmp_path / "remote"))
    git(workspace, "push", "-q", "origin", "HEAD")
    assert [home.upulse(*asked).out.strip() for _ in range(2)] == ["https://github.com/ada/app/pull/1"] * 2
    assert task(home, id_)["pull_request"] == "https://github.com/ada/app/pull/1"
    assert json.loads(home.upulse(*asked, "--json").out)["pull_request"].endswith("/pull/1")
    for name in ("go", "helper"):
        (workspace / name).unlink()
    assert home.upulse("agents", "worktrees", "--remove", "--json").json == []
    assert not workspace.exists()
    (stats,) = home.upulse("agents", "stats", "--json").json
    assert (stats["name"], stats["closed"], stats["failed"]) == ("ada", 1, 0)
    assert "ada" in home.upulse("agents", "list").out
    eventually(lambda: home.upulse("agents", "ps", "--json").json == [], "the run to be cleaned up")
    (home.path / "runs" / run["run"] / "output.log").unlink()
    assert home.upulse("run", "logs", id_).out.strip() == printed.strip()
    said = json.loads(home.upulse("run", "logs", id_, "--json").out)
    assert (said["task"], said["run"], said["text"].strip()) == (id_, run["run"], printed.strip())
    (recorded,) = home.upulse("events", "--kind", "agent-run-printed", "--json").lines
    assert recorded["subject"] == run["run"]


def test_agents_are_listed_paused_and_examined_without_a_daemon(quiet: CliHome, tmp_path: Path) -> None:
    quiet.configure(settings(tmp_path), '[[agent]]\nname = "bob"\ncommand = ["/nowhere/bob"]')
    quiet.upulse("agents", "pause", "bob", "--why", "holidays")
    listed = {one["name"]: one for one in quiet.upulse("agents", "list", "--json").json}
    assert listed["bob"]["unavailable"] == "paused by a person"
    assert listed["ada"]["unavailable"] is None
    quiet.upulse("agents", "resume", "bob")
    assert quiet.upulse("agents", "list", "--json").json[1]["unavailable"] is None
    assert "no [[agent]] 'eve'" in quiet.upulse("agents", "pause", "eve", code=1).err
    found = {one["agent"]: one for one in quiet.upulse("agents", "doctor", "--json", code=1).json}
    assert found["bob"]["words"].startswith("there is no program '/nowhere/bob'")
    assert found["ada"]["words"].endswith("it is not logged in: Not logged in.")
    quiet.upulse("project", "add", "app")
    id_ = quiet.upulse("task", "add", "app", "Mend it").out.strip()
    assert f"no agent has been at {id_} yet" in quiet.upulse("run", "logs", id_, code=1).err


def test_a_project_keeps_what_is_not_said_anew(quiet: CliHome, tmp_path: Path) -> None:
    quiet.upulse("project", "add", "app", "--repository", str(tmp_path), "--member", "ada", "--base", "trunk")
    quiet.upulse("project", "add", "app", "--review")
    found = quiet.upulse("project", "show", "app", "--json").json
    assert (found["repository"], found["base"], found["members"]) == (str(tmp_path), "trunk", ["ada"])
    assert found["review"] is True
    quiet.upulse("project", "add", "app", "--no-review", "--column", "Ready")
    found = quiet.upulse("project", "show", "app", "--json").json
    assert (found["review"], found["columns"], found["base"]) == (False, ["Ready"], "trunk")
    assert "No task has a folder." in quiet.upulse("agents", "worktrees").err


def test_what_a_task_waits_for_is_told_for_programs_too(quiet: CliHome) -> None:
    quiet.upulse("project", "add", "app")
    first = quiet.upulse("task", "add", "app", "First").out.strip()
    second = quiet.upulse("task", "add", "app", "Second", "--after", first).out.strip()
    assert quiet.upulse("task", "deps", second, "--json").json == [{"format": 1, "id": first, "open": True}]
    quiet.upulse("task", "close", first)
    assert quiet.upulse("task", "deps", second, "--json").json == [{"format": 1, "id": first, "open": False}]
    words = quiet.upulse("task", "ack", first, code=1).err
    assert f"{first} is closed: ack is not possible; nothing more can happen to it" in words


def test_a_run_that_is_held_is_told_with_its_task_and_who_is_logged_in_again_goes_on(
    home: CliHome, tmp_path: Path
) -> None:
    script = f"test -e {tmp_path}/in || exit 77"
    guest = f'[[agent]]\nname = "guest"\ncommand = ["sh", "-c", "{script}"]\nprojects = ["other"]'
    home.configure(settings(tmp_path, silence='"1s"', projects='["app"]') + "\n" + guest)
    home.upulse("daemon", "reload")
    home.upulse("project", "add", "other")
    held = home.upulse("task", "add", "app", "Mend it", "--prompt", "wait").out.strip()
    left = home.upulse("task", "add", "other", "Look").out.strip()
    assert eventually(lambda: task(home, held)["held"], "a held run") == "it printed nothing for 1 s"
    assert eventually(lambda: task(home, left)["error"], "a failure") == "it exited with status 77"
    assert "held" in home.upulse("task", "show", held).out
    (tmp_path / "in").touch()
    doctor = home.upulse("agents", "doctor", code=1)
    assert "guest was set aside, and goes on." in doctor.err
    assert eventually(lambda: task(home, left)["status"] == "closed", "the end")
