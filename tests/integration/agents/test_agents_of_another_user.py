"""An agent with a user of its own, who may enter neither the home nor its run/: it reaches the daemon all the same."""

import json
import os
from pathlib import Path

from pulse_adapters.agents.run_tokens import run_socket
from pulse_adapters.workers.users import process_user
from tests.engine_user import ROOT_ALONE, open_folder, packages_for, python_for_all
from tests.integration.cli.cli_home import CliHome, eventually

SCRIPT = r"""
import json, os, socket, subprocess, sys

def ask(token=None, **request):
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(os.environ["PULSE_SOCKET"])
        there.sendall(json.dumps({"v": 1, "token": token, **request}).encode() + b"\n")
        answer = json.loads(there.makefile().readline())
    return answer["error"]["message"] if "error" in answer else answer["item"]

def upulse(*words):
    done = subprocess.run([sys.executable, "-m", "upulse_cli", *words], capture_output=True, text=True, timeout=60)
    return [done.returncode, done.stderr, done.stdout]

token = os.environ["PULSE_TOKEN"]
print(json.dumps({
    "uid": os.getuid(),
    "without": ask(op="state"),
    "wrong": ask(token[:-1], op="state"),
    "status": ask(token, op="status"),
    "title": ask(token, op="state")["value"]["title"],
    "beat": upulse("task", "heartbeat", os.environ["PULSE_TASK"], "--token", "1"),
    "other": upulse("task", "heartbeat", "task_000002", "--token", "1"),
    "close": upulse("task", "close", os.environ["PULSE_TASK"]),
    "part": upulse("task", "add", "app", "A part of it", "--column", "Backlog", "--json"),
    "shown": upulse("task", "show", os.environ["PULSE_TASK"], "--json"),
    "home": upulse("events"),
}))
sys.exit(0)
"""


@ROOT_ALONE
def test_it_speaks_of_its_own_task_alone_at_a_socket_of_its_group_and_by_the_command_line() -> None:
    with open_folder() as folder, python_for_all() as python:
        home, script = CliHome(folder / "home"), folder / "agent.py"
        script.write_text(SCRIPT)
        home.upulse("init", "--no-engine")
        home.configure(
            f'[agents]\nworkspaces = "{folder / "work"}"\n[[agent]]\nname = "eve"\nuser = "nobody"\n'
            f'command = ["{python}", "{script}"]\nenv = {{ PYTHONPATH = "{":".join(packages_for(python))}" }}'
        )
        user = process_user("nobody")
        assert user is not None
        path = run_socket(home.path, user)
        home.upulse("daemon", "start")
        try:
            eventually(path.exists, "the socket of its group")
            assert (os.stat(path.parent).st_mode & 0o777, os.stat(path).st_gid) == (0o750, user.gid)
            home.upulse("project", "add", "app")
            id_ = home.upulse("task", "add", "app", "Mend it").out.strip()

            def ended() -> dict[str, object] | None:
                said = dict(home.upulse("task", "show", id_, "--json").json)
                return said if said["status"] == "closed" or said["error"] else None

            said = eventually(ended, "its answer, and its end")
            told = json.loads(str(said["result"]))
            assert told["uid"] == user.uid
            assert "says its token" in told["without"]
            assert "a token that is no run's" in told["wrong"]
            assert "not status" in told["status"]
            assert (told["title"], told["beat"][0]) == ("Mend it", 0)
            assert told["other"][0] == told["close"][0] == told["home"][0] == 1
            assert "no task 'task_000002'" in told["other"][1]
            assert "a run may say upulse task ack" in told["close"][1]
            shown = json.loads(told["shown"][2])
            assert [shown[name] for name in ("title", "status", "project", "attempts", "events")] == [
                "Mend it", "executing", "app", 1, [],
            ]  # fmt: skip
            assert told["part"][0] == 0
            (part,) = home.upulse("task", "list", "--project", "app", "--json").json
            assert json.loads(told["part"][2])["id"] == part["id"]
            assert (part["title"], part["parent"], part["by"]) == ("A part of it", id_, "eve")
            home.upulse("daemon", "stop")
            assert not path.parent.exists()
        finally:
            home.end_everything()
            remove(path)


def remove(path: Path) -> None:
    """What a daemon that was killed has left."""
    path.unlink(missing_ok=True)
    if path.parent.exists():
        path.parent.rmdir()


def test_who_is_nobody_here_is_told_before_it_is_started(quiet: CliHome) -> None:
    quiet.configure('[[agent]]\nname = "eve"\nuser = "no-such-user"\ncommand = ["/bin/true"]')
    words = "there is no user 'no-such-user' on this machine"
    (found,) = quiet.upulse("agents", "doctor", "--json", code=1).json
    assert (found["is_well"], found["words"]) == (False, words)
    assert quiet.upulse("config", "check", "--json").json["doubts"] == {"agent eve": words}
    assert f"agent eve: {words}" in quiet.upulse("config", "check").err


@ROOT_ALONE
def test_what_its_user_may_not_enter_or_start_is_told_before_it_is_started(quiet: CliHome) -> None:
    agent = '[[agent]]\nname = "eve"\nuser = "nobody"\nkind = "claude"\ncommand = ["{}"]\n'
    with open_folder() as folder:
        program, closed = folder / "open" / "agent", folder / "closed" / "agent"
        for one, mode in ((program, 0o755), (closed, 0o700)):
            one.parent.mkdir()
            one.write_text("#!/bin/sh\nid -u\n")
            one.chmod(0o755)
            one.parent.chmod(mode)
        work = f'[agents]\nworkspaces = "{folder / "work"}"\n'
        for settings, code, words in (
            (agent.format(program), 1, f"nobody may not enter {quiet.path}; name another folder"),
            (
                work + agent.format(closed),
                1,
                f"nobody may not execute {closed}, or enter its folder",
            ),
            (work + agent.format(program), 0, f"{program}, {process_user('nobody').uid}, logged in"),  # type: ignore[union-attr]
        ):
            quiet.configure(settings)
            (found,) = quiet.upulse("agents", "doctor", "--json", code=code).json
            assert found["words"].startswith(words)
