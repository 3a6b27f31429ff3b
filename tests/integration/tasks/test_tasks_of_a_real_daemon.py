"""Tasks on a real daemon, socket and disk: many claimers at once, and a daemon that is killed between claim and result."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from tests.integration.cli.cli_home import CliHome, eventually
from tests.processes import child_of_test

CLAIMERS = 50


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    made = CliHome(tmp_path / "home")
    made.upulse("init", "--no-engine")
    made.start_daemon()
    try:
        yield made
    finally:
        made.upulse("daemon", "stop")


CLAIMER = """
import json, os, socket, sys, time

place, task, agent = sys.argv[1:]
os.chdir(place)  # the kernel takes short names of sockets alone
data = {"agent": agent, "lease_us": 900_000_000}
drafts = [{"kind": "task-executing", "subject": task, "data": data}]
request = json.dumps({"v": 1, "op": "append", "drafts": drafts}).encode()
sys.stdin.read()  # until all may begin
error = {"type": "Crowded"}
while error.get("type") == "Crowded":
    time.sleep(0.05 * ("message" in error))
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("pulse.sock")
        caller.sendall(request + b"\\n")
        answers = map(json.loads, caller.makefile("rb"))
        error = next(one for one in answers if "end" in one or "error" in one).get("error", {})
print(error.get("message", ""))
"""
"""Says as a program of any kind would, over the socket alone; prints what was wrong, or nothing."""


def claims_at_once(home: CliHome, task: str, names: list[str]) -> dict[str, str]:
    """What each was told whose process claims it at the same moment; empty if it has won."""
    place = str(Home(home.path).socket.parent)
    told, begin = os.pipe()
    with ExitStack() as stack, open(told, "rb", 0) as waiting:
        with open(begin, "wb", 0):
            argvs = [(sys.executable, "-I", "-S", "-c", CLAIMER, place, task, name) for name in names]
            claimers = [
                stack.enter_context(
                    child_of_test(subprocess.Popen(argv, stdin=waiting, stdout=subprocess.PIPE, text=True))
                )
                for argv in argvs
            ]
        return {
            name: claimer.communicate(timeout=120)[0].strip()
            for name, claimer in zip(names, claimers, strict=True)
        }


def test_one_of_many_gets_a_task_and_its_claim_outlives_the_daemon(home: CliHome) -> None:
    home.upulse("project", "add", "app")
    task = home.upulse("task", "add", "app", "Mend the leak").out.strip()
    answers = claims_at_once(home, task, [f"agent-{number}" for number in range(CLAIMERS)])
    (winner,) = [name for name, answer in answers.items() if not answer]
    assert all(f"{task} is executing by {winner}" in said for name, said in answers.items() if name != winner)

    token = home.upulse("task", "claim", task, "--agent", winner).out.strip()
    os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)
    eventually(lambda: home.status()["daemon"]["pid"] is None, "the daemon to be gone")
    home.upulse("task", "heartbeat", task, "--token", token)
    said = home.upulse("task", "ack", task, "--token", "1", "--result", "from elsewhere", code=1)
    assert f"the claim 1 of {task} is over: {winner} holds it under {token} now" in said.err

    home.start_daemon()
    home.upulse("task", "ack", task, "--token", token, "--result", "It is bounded now.")
    eventually(lambda: home.upulse("task", "list", "--json").json == [], "it to be closed")
    assert [one["id"] for one in home.upulse("task", "list", "--status", "closed", "--json").json] == [task]
    said = home.upulse("task", "list", "--status", "done", code=2)
    assert "no status 'done'; there are pending, assigned, " in said.err
    shown = home.upulse("task", "show", task, "--json").json
    assert (shown["status"], shown["result"], shown["attempts"]) == ("closed", "It is bounded now.", 1)
    kinds = [event["kind"] for event in shown["events"]]
    assert kinds == ["task-created", "task-executing", "task-result-refused", "task-acked", "task-closed"]


HOLDER = """
import sys
from pathlib import Path
from pulse_adapters.ipc.client import Client
from pulse_core.model.errors import PulseError

place, task = sys.argv[1:]


def say(kind, **data):
    with Client(Path(place), timeout=60) as client:
        return client.ask("append", drafts=[{"kind": kind, "subject": task, "data": data}])["events"][0]["seq"]


token = say("task-executing", agent="ada", lease_us=1_000_000)
print(token, flush=True)
input()
try:
    say("task-acked", token=token, result="I have only slept.")
except PulseError as error:
    print(error)
"""


def test_a_holder_that_was_stopped_until_its_lease_had_ended_comes_too_late(home: CliHome) -> None:
    home.upulse("project", "add", "app", "--member", "ada", "--member", "bob")
    task = home.upulse("task", "add", "app", "Mend the leak").out.strip()

    def ready(agent: str) -> list[str]:
        return [one["id"] for one in home.upulse("task", "list", "--ready", agent, "--json").json]

    assert (ready("ada"), ready("eve")) == ([task], [])
    argv = (sys.executable, "-c", HOLDER, str(Home(home.path).socket), task)
    with child_of_test(
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ) as holder:
        try:
            assert holder.stdin
            assert holder.stdout
            old = holder.stdout.readline().strip()
            holder.send_signal(signal.SIGSTOP)
            eventually(lambda: ready("bob") == [task], "its lease to end")
            token = home.upulse("task", "claim", task, "--agent", "bob").out.strip()
            assert ready("bob") == []
            holder.send_signal(signal.SIGCONT)
            said, _ = holder.communicate("\n", timeout=60)
        finally:
            holder.kill()
    assert f"the claim {old} of {task} is over: bob holds it under {token} now" in said
    shown = home.upulse("task", "show", task, "--json").json
    assert (shown["status"], shown["attempts"]) == ("executing", 2)
    assert shown["events"][-1]["data"]["result"] == "I have only slept."
