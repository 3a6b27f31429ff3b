"""Tens of thousands of wrong requests: each is answered, nobody else notices, and their memory is given back."""

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.ipc.client import Client
from tests.long_form import sample

GOOD = b'{"v": 1, "op": "echo", "n": [1, 2.5, "\\u00e9", null, true], "drafts": [{"kind": "effect", "data": {}}]}'
SPLICES = (
    b"9" * 5_000, b"[" * 5_000, b'{"a":' * 5_000, b"[[],[]," * 50_000, b"1e999", b"-Infinity", b"\\ud800", b"\xff\xfe",
    b"\n", b'"', b"\\", b"}", b"x" * 500_000, b"1," * 400_000, b'"v": 2', b'"op": "count", "upto": 5', b'"op": "break"',
    b"\0",
)  # fmt: skip
GROWTH = 16 << 20
"""Bytes by which the server's memory may grow: pieces between what stays in use."""


class Server:
    """A server in a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        argv = [sys.executable, "-m", "tests.integration.ipc.ipc_desk", str(path)]
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.child.stdout
        assert self.child.stdout.readline() == b"serving\n"

    def resident(self) -> int:
        """Bytes of its memory."""
        pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def answers(self) -> bool:
        with Client(self.path, 30) as client:
            return bool(client.ask("echo", n=1)["n"] == 1)

    def end(self) -> bytes:
        """What it says at its end."""
        return self.child.communicate(timeout=60)[0]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "run" / "pulse.sock")
    yield one
    if one.child.poll() is None:
        one.child.kill()
        one.child.communicate(timeout=60)


def line(dice: random.Random) -> bytes:
    """A request in which something is altered, taken out, or put in."""
    text = bytearray(GOOD)
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        start, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + dice.choice((1, 8, 40)))
        put = dice.choice(SPLICES) if dice.random() < 0.3 else dice.randbytes(dice.randrange(8))
        text[start:end] = b"" if dice.random() < 0.3 else put
    return bytes(text) + b"\n"


def attack(server: Server, dice: random.Random, count: int) -> None:
    """So many lines, on connections that are read, left, closed on one side, or kept open with half a line."""
    kept: list[socket.socket] = []
    while count > 0:
        caller = socket.socket(socket.AF_UNIX)
        caller.settimeout(30)
        caller.connect(str(server.path))
        lines = [line(dice) for _ in range(dice.choice((1, 1, 5, 20)))]
        count -= len(lines)
        with suppress(BrokenPipeError, ConnectionResetError):
            match dice.randrange(5):
                case 0:
                    caller.sendall(b"".join(lines))
                case 1:
                    caller.sendall(b"".join(lines))
                    caller.shutdown(socket.SHUT_WR)
                    assert_answered(caller)
                case 2:
                    caller.sendall(lines[0][: dice.randrange(len(lines[0]))])
                    kept = [caller, *kept[:40]]
                    continue
                case _:
                    for one in lines:
                        caller.sendall(one[:1_000_000])
                        caller.sendall(b"\n")
                    caller.shutdown(socket.SHUT_WR)
                    assert_answered(caller)
        caller.close()
    for caller in kept:
        caller.close()


def assert_answered(caller: socket.socket) -> None:
    """Read to the end: every line is one of the protocol's, and there are some."""
    heard = caller.makefile("rb").readlines()
    assert heard
    assert all(json.loads(one).keys() & {"item", "end", "error", "alive"} for one in heard)


def crowd(server: Server, count: int) -> None:
    """So many callers, each with a mebibyte that is asked, echoed and not read."""
    callers = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for caller in callers:
        caller.settimeout(30)
        caller.connect(str(server.path))
        caller.sendall(b'{"v": 1, "op": "echo", "text": "' + b"x" * 1_000_000)
    for caller in callers:
        caller.sendall(b'"}\n')
        assert caller.recv(1)
    for caller in callers:
        caller.close()


def test_wrong_requests_are_answered_and_their_memory_is_given_back(server: Server) -> None:
    assert server.answers()
    before = server.resident()
    attack(server, random.Random(1), sample(1_000, 100_000))
    crowd(server, 40)
    assert server.answers()
    assert server.resident() - before < GROWTH
    errors = server.end().decode()
    assert set(errors.replace("KeyError('secret')", "").strip()) <= set("[], ")
