"""Tasks on a real daemon, socket and disk: many claimers at once, and a daemon that is killed between claim and result."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_core.model.errors import PulseError
from tests.integration.cli.cli_home import CliHome, eventually

CLAIMERS = 50


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    made = CliHome(tmp_path / "home")
    made.upulse("init", "--no-engine")
    made.upulse("daemon", "start")
    try:
        yield made
    finally:
        made.upulse("daemon", "stop")


def claim(home: CliHome, task: str, agent: str) -> str:
    """Empty if it was won; else what was said."""
    data = {"agent": agent, "lease_us": 900_000_000}
    try:
        with Client(Home(home.path).socket, timeout=60) as client:
            client.ask("append", drafts=[{"kind": "task-executing", "subject": task, "data": data}])
    except PulseError as error:
        return str(error)
    return ""


def test_one_of_many_gets_a_task_and_its_claim_outlives_the_daemon(home: CliHome) -> None:
    home.upulse("project", "add", "app")
    task = home.upulse("task", "add", "app", "Mend the leak").out.strip()
    with ThreadPoolExecutor(CLAIMERS) as pool:
        names = [f"agent-{number}" for number in range(CLAIMERS)]
        answers = dict(zip(names, pool.map(lambda name: claim(home, task, name), names), strict=True))
    (winner,) = [name for name, answer in answers.items() if not answer]
    assert all(f"{task} is executing by {winner}" in said for name, said in answers.items() if name != winner)

    token = home.upulse("task", "claim", task, "--agent", winner).out.strip()
    os.kill(home.status()["daemon"]["pid"], signal.SIGKILL)
    eventually(lambda: home.status()["daemon"]["pid"] is None, "the daemon to be gone")
    home.upulse("task", "heartbeat", task, "--token", token)
    said = home.upulse("task", "ack", task, "--token", "1", "--result", "from elsewhere", code=1)
    assert f"the claim 1 of {task} is over: {winner} holds it under {token} now" in said.err

    home.upulse("daemon", "start")
    home.upulse("task", "ack", task, "--token", token, "--result", "It is bounded now.")
    eventually(lambda: home.upulse("task", "list", "--json").json == [], "it to be closed")
    assert [one["id"] for one in home.upulse("task", "list", "--status", "closed", "--json").json] == [task]
    said = home.upulse("task", "list", "--status", "done", code=2)
    assert "no status 'done'; there are pending, assigned, " in said.err
    shown = home.upulse("task", "show", task, "--json").json
    assert (shown["status"], shown["result"], shown["attempts"]) == ("closed", "It is bounded now.", 1)
    kinds = [event["kind"] for event in shown["events"]]
    assert kinds == ["task-created", "task-executing", "task-result-refused", "task-acked", "task-closed"]
