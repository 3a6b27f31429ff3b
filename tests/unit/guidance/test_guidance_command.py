"""`upulse guidance start` and its clients over real HTTP, killed in between; and what the daemon's watcher notices."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mcp import Client

from pulse_core.guidance.protocol import FILES
from tests.processes import PATIENCE, child_of_test


def command(home: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "upulse_cli", "guidance", *words, "--home", str(home)]


@contextmanager
def serving(home: Path, project: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The endpoint of a server, and its process."""
    words = command(home, "start", "--project", str(project), "--port", str(port))
    with child_of_test(subprocess.Popen(words, stderr=subprocess.PIPE, text=True)) as child:
        assert child.stderr is not None
        said = ""
        while not (found := re.search(r"MCP endpoint: (\S+)", said)):
            line = child.stderr.readline()
            assert line, said
            said += line
        yield found[1], child
        child.terminate()
        assert child.wait(PATIENCE) in (0, -signal.SIGKILL)


def write(project: Path, name: str, text: str) -> None:
    """Write a file of the project at once: nobody sees a part of it."""
    new = project / ".pulse" / f"{name}.new"
    new.write_text(text)
    new.replace(project / ".pulse" / name)


async def call(client: Client, name: str, **arguments: Any) -> Any:
    (block,) = (await client.call_tool(name, arguments)).content
    return json.loads(block.text)  # type: ignore[union-attr]


def recorded(project: Path) -> list[Any]:
    return [json.loads(line) for line in (project / ".pulse/events.jsonl").read_text().splitlines()]


@pytest.mark.timeout(240)
def test_an_agent_works_with_a_server_that_is_killed(tmp_path: Path) -> None:
    """Everything that a user of PulseAgent does, without a home before, and without a daemon."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    with serving(home, project) as (url, child):
        assert {path.name for path in (project / ".pulse").iterdir()} == {
            *FILES,
            "state.json",
            "events.jsonl",
        }
        pending = asyncio.run(interrupted(url, project))
        port = int(url.split(":")[2].split("/")[0])
        other = tmp_path / "other"
        other.mkdir()
        busy = command(tmp_path / "new", "start", "-p", str(other), "--port", str(port))
        done = subprocess.run(busy, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, list(other.iterdir()), (tmp_path / "new").exists()) == (3, [], False)
        assert f"process {child.pid}" in done.stderr
        child.kill()
        child.wait(PATIENCE)
    write(project, "constraints.md", "while it was dead")
    (project / ".pulse/state.json").unlink()
    with serving(home, project) as (url, _):
        asyncio.run(acknowledged(url, project, pending))
    assert [(one["kind"], one["path"]) for one in recorded(project)] == [
        ("modified", ".pulse/guidance.md"),
        ("modified", ".pulse/constraints.md"),
        ("modified", ".pulse/plan.md"),
    ]
    listed = subprocess.run(command(home, "list", "--json"), capture_output=True, text=True, timeout=PATIENCE)
    (one,) = json.loads(listed.stdout).values()
    assert (one["events"], one["needs_replan"], one["watched"]) == (3, False, False)


BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
HEAD = (
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
    "Content-Type: application/json\r\n"
)
ASKED = f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n{BODY}".encode()
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()
FRAMES: Mapping[str, Callable[[Random], bytes]] = {
    "half a head": lambda random: ASKED[: random.randrange(1, len(HEAD))],
    "half a body": lambda random: ASKED[: -random.randrange(1, len(BODY))],
    "many at once": lambda random: ASKED * 20,
    "a long header": lambda random: ASKED.replace(b"Host", b"X-A: %b\r\nHost" % (b"a" * 300_000), 1),
    "many headers": lambda random: ASKED.replace(b"Host", b"X-A: b\r\n" * 10_000 + b"Host", 1),
    "chunks of no size": lambda random: CHUNKED + b"zz\r\n" + random.randbytes(50),
    "a chunk without end": lambda random: CHUNKED + b"ffffffff\r\n" + random.randbytes(50),
    "two lengths": lambda random: CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + ASKED,
    "no length": lambda random: ASKED.replace(b"Content-Length: ", b"Content-Length: -"),
    "a long body": lambda random: f"{HEAD}Content-Length: 2000000\r\n\r\n".encode() + b"[" * 2_000_000,
    "two hosts": lambda random: ASKED.replace(b"Host", b"Host: evil.example\r\nHost", 1),
    "another protocol": lambda random: ASKED.replace(b"Host", b"Upgrade: websocket\r\nHost", 1),
    "another byte": lambda random: ASKED.replace(ASKED[(at := random.randrange(200)) : at + 1], b"\xff", 1),
    "noise": lambda random: random.randbytes(random.randrange(1, 2_000)),
}  # fmt: skip


def test_whatever_comes_over_a_socket_the_next_request_is_answered(tmp_path: Path) -> None:
    """Clients that stay connected after such a frame, too, and nothing is said of any of them."""
    random, project = Random(1), tmp_path / "project"
    project.mkdir()
    with serving(tmp_path / "home", project) as (url, child), ExitStack() as opened:
        address = "127.0.0.1", int(url.split(":")[2].split("/")[0])
        for frame in [frame for frame in FRAMES.values() for _ in range(4)]:
            odd = opened.enter_context(socket.create_connection(address, PATIENCE))
            with suppress(ConnectionError):  # it hangs up as soon as it has seen enough
                odd.sendall(frame(random))
            if random.random() < 0.5:
                odd.close()
            with socket.create_connection(address, PATIENCE) as good:
                good.sendall(ASKED)
                assert good.recv(1 << 16).startswith(b"HTTP/1.1 200")
        opened.close()
        child.terminate()
        assert child.stderr is not None
        assert child.stderr.read() == ""


WITHOUT = """
import sys

from upulse_cli.__main__ import main

for words in (["init", "--no-engine"], ["guidance", "add", "."], ["guidance", "list"], ["guidance", "status"], ["status"]):
    assert main([*words, "--home", "home"]) == 0, words
import upulse_cli.serve
from pulse_adapters.guidance.watcher import GuidanceWatcher
print("imported", *sys.modules)
"""
EXTRA = {"mcp", "mcp_types", "uvicorn", "starlette"}


def test_nothing_but_the_server_needs_the_package_of_mcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert not EXTRA & set(done.stdout.rpartition("imported")[2].split())
    from upulse_cli.__main__ import main

    (tmp_path / "project").mkdir()
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["guidance", "start", "-p", str(tmp_path / "project"), "--home", str(tmp_path / "new")]) == 1
    assert "pip install 'upulse[mcp]'" in capsys.readouterr().err
    assert not list((tmp_path / "project").iterdir())


async def interrupted(url: str, project: Path) -> str:
    """What four clients are told of an edit at the same time."""

    async def poll() -> Any:
        async with Client(url) as client:
            return await call(client, "pulse_should_interrupt")

    write(project, "guidance.md", "a smaller patch")
    answers = await asyncio.gather(*(poll() for _ in range(4)))
    assert {one["pending_replan_event_id"] for one in answers} == {recorded(project)[-1]["id"]}
    assert len(recorded(project)) == 1
    return str(answers[0]["pending_replan_event_id"])


async def acknowledged(url: str, project: Path, first: str) -> None:
    """What was pending before a crash is pending after it, and one acknowledgement clears it with what came meanwhile."""
    async with Client(url, mode="legacy") as client:
        asked = await call(client, "pulse_should_interrupt", last_seen_event_id=first)
        assert asked["changed_files"] == [".pulse/constraints.md"]
        assert asked["pending_replan_files"] == [".pulse/guidance.md", ".pulse/constraints.md"]
        assert "stale" in (await call(client, "pulse_ack_replan", event_id=first))["reason"]
        write(project, "plan.md", "smaller, without dependencies")
        done = await call(client, "pulse_ack_replan", event_id=asked["pending_replan_event_id"])
        assert done["accepted"]
        state = json.loads((project / ".pulse/state.json").read_text())
        assert state["last_acknowledged_event_id"] == asked["pending_replan_event_id"]
        assert (
            state["last_acknowledged_plan_sha256"] == done["plan_sha256"] == state["last_hashes"]["plan.md"]
        )
        assert not (await call(client, "pulse_should_interrupt"))["needs_replan"]


def test_people_see_how_a_project_stands_and_wait_for_a_change_or_its_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from upulse_cli.__main__ import main

    def upulse(*words: str) -> int:
        capsys.readouterr()
        return main([*words, "--home", str(tmp_path / "home")])

    project = tmp_path / "project"
    project.mkdir()
    assert upulse("init", "--no-engine") == 0
    assert upulse("guidance", "wait", str(project)) == 1
    assert upulse("guidance", "add", str(project)) == 0
    assert upulse("guidance", "wait", str(project), "--until-ack") == 0
    assert upulse("guidance", "wait", str(project), "--timeout", "0s") == 1
    assert "nothing has changed in time" in capsys.readouterr().err
    write(project, "guidance.md", "smaller")
    assert upulse("guidance", "wait", str(project)) == 0
    assert upulse("guidance", "wait", str(project), "--until-ack", "--timeout", "0s") == 1
    assert "it was not acknowledged in time" in capsys.readouterr().err
    assert upulse("guidance", "status", str(project)) == 0
    assert "An agent has to replan: .pulse/guidance.md changed (evt_" in capsys.readouterr().out
    assert upulse("guidance", "remove", str(project)) == 0
    assert upulse("guidance", "list", "--json") == 0
    (one,) = json.loads(capsys.readouterr().out).values()
    assert (one["watched"], one["needs_replan"]) == (False, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "--token"),
        (("--host", "0.0.0.0", "--token", "env:NOT_THERE"), "env:NAME"),
        (("--project", "missing"), "is no folder"),
        (("--host", "192.0.2.1", "--token", "env:PATH"), "can't be used"),
    ],
)
def test_what_can_not_be_served_is_said_and_nothing_is_written(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from upulse_cli.__main__ import main

    monkeypatch.chdir(tmp_path)
    assert main(["guidance", "start", "--home", "home", *words]) == 1
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
