"""Whoever asks for nothing makes room for whoever asks; nobody loses a request by that."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.ipc import connection_limit
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.connection_limit import GIVEN_AWAY
from pulse_adapters.ipc.wire import WireLimits
from tests.integration.ipc.ipc_desk import Desk, opened

ASK = b'{"v": 1, "op": "echo", "n": 1}\n'
LARGE = b'{"v": 1, "op": "echo", "text": "' + b"x" * 900_000 + b'"}\n'
FOR_EVER = b'{"v": 1, "op": "for-ever"}\n'
HOLD = """
import socket, sys
held = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[2]))]
for one in held:
    one.connect(sys.argv[1])
    one.sendall(b'{"v": 1, "op": "nothing"}\\n')
    assert one.recv(1000) == b'{"end": true}\\n'
print("held", flush=True)
sys.stdin.read()
"""


class Line:
    """A caller's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def says(self, line: bytes) -> dict[str, Any]:
        """The first line of the answer to this line; empty if the other side hung up."""
        self.writer.write(line)
        try:
            return await self.heard()
        except ConnectionError:  # it hung up before this was written, and what it said is lost to asyncio
            return {}

    async def heard(self) -> dict[str, Any]:
        return dict(json.loads(await self.reader.readline() or b"{}"))

    async def is_answered(self) -> bool:
        answered = "item" in await self.says(ASK)
        return answered and await self.heard() == {"end": True}

    async def is_hung_up_on(self) -> bool:
        return await self.reader.read() == GIVEN_AWAY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "pulse.sock"


@asynccontextmanager
async def calling(path: Path, count: int = 1) -> AsyncIterator[list[Line]]:
    """So many connections, made one after the other."""
    lines = [Line(*await opened(path, limit=1 << 22)) for _ in range(count)]
    try:
        async with asyncio.timeout(60):
            yield lines
    finally:
        for line in lines:
            line.writer.close()


async def answered(path: Path) -> bool:
    async with calling(path) as (one,):
        return await one.is_answered()


async def test_sixty_four_who_ask_for_nothing_keep_nobody_out(path: Path) -> None:
    async with Desk().serve(path), calling(path, 64) as lines:
        assert await lines[-1].is_answered()  # the last one is in, and so are the others
        assert await answered(path)
        assert await lines[0].is_hung_up_on()
        assert [await line.is_answered() for line in lines[1:]] == [True] * 63


async def test_where_descriptors_are_scarce_one_is_let_in_and_the_next_in_its_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limit, "are_descriptors_scarce", lambda: True)
    async with Desk().serve(path), calling(path) as (only,):
        assert await only.is_answered()
        async with calling(path) as (other,):
            assert "item" in await other.says(FOR_EVER)
            assert await only.is_hung_up_on()
            async with calling(path) as (third,):
                assert "try again later" in (await third.heard())["error"]["message"]


async def test_who_has_asked_lately_stays(path: Path) -> None:
    async with Desk().serve(path, WireLimits(connections=3)), calling(path, 3) as (first, second, third):
        for line in (third, first, second):
            assert await line.is_answered()
        assert await answered(path)
        assert await third.is_hung_up_on()
        assert await first.is_answered()
        assert await second.is_answered()


async def test_half_a_line_is_nothing_asked(path: Path) -> None:
    async with Desk().serve(path, WireLimits(connections=2)), calling(path, 2) as (half, idle):
        assert await half.is_answered()
        half.writer.write(ASK[:5])
        assert await idle.is_answered()
        assert await answered(path)
        assert await half.is_hung_up_on()
        assert await idle.is_answered()


async def test_a_request_under_way_is_never_ended_to_make_room(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, WireLimits(connections=2)), calling(path, 2) as (works, idle):
        assert "item" in await works.says(FOR_EVER)
        for _ in range(5):
            assert await answered(path)
        assert await idle.is_hung_up_on()
        async with calling(path) as (other,):
            assert "item" in await other.says(FOR_EVER)
            async with calling(path) as (third,):
                assert "try again later" in (await third.heard())["error"]["message"]
        assert not request_handler.ended[1:]
    assert request_handler.ended == ["for-ever", "for-ever"]


FOLLOW = b'{"v": 1, "op": "follow"}\n'
BRIEFLY = b'{"v": 1, "op": "follow", "brief": true}\n'


async def test_sixty_four_who_follow_leave_room_for_whoever_asks(path: Path) -> None:
    async with Desk().serve(path), calling(path, 64) as lines:
        said = [await line.says(FOLLOW) for line in lines]
        assert ["item" in one for one in said] == [True] * 48 + [False] * 16
        told = said[-1]["error"]
        assert told["type"] == "NotWelcome"
        assert told["message"].startswith("48 callers follow the log already, and that is enough")
        assert await lines[-1].is_answered()  # who is refused to follow may ask all the same
        for _ in range(20):
            assert await answered(path)
        async with calling(path) as (waits,):
            assert "item" in await waits.says(BRIEFLY)


async def test_a_follower_that_goes_makes_room_for_the_next(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, WireLimits(followers=1)), calling(path) as (late,):
        async with calling(path) as (early,):
            assert "item" in await early.says(FOLLOW)
            assert "error" in await late.says(FOLLOW)
        while not request_handler.ended:
            await asyncio.sleep(0)
        assert "item" in await late.says(FOLLOW)


def caller(path: Path, line: bytes = b"") -> socket.socket:
    """A connection that is made at once, without giving the server a turn."""
    one = socket.socket(socket.AF_UNIX)
    one.connect(str(path))
    one.sendall(line)
    one.settimeout(30)
    return one


async def heard(one: socket.socket) -> bytes:
    def work() -> bytes:
        with one:
            return one.makefile("rb").readline()

    return await asyncio.to_thread(work)


async def test_a_request_that_only_the_kernel_knows_of_counts(path: Path) -> None:
    async with Desk().serve(path, WireLimits(connections=2)), calling(path, 2) as (asks, idle):
        assert await asks.is_answered()
        assert await idle.is_answered()
        newcomer = caller(path, ASK)  # nothing of this is seen before the next turn, and then all at once
        asks.writer.write(ASK)
        assert b"item" in await heard(newcomer)
        assert "item" in await asks.heard()
        assert await idle.is_hung_up_on()


async def test_a_crowd_that_comes_at_once_is_answered_or_told_why_not(path: Path) -> None:
    async with Desk().serve(path, WireLimits(connections=5)):
        crowd = [caller(path, ASK) for _ in range(90)]
        told = [await heard(one) for one in crowd]
        assert sum(b"item" in line for line in told) >= 5
        assert [line for line in told if b"item" not in line and b"try again later" not in line] == []
        assert await answered(path)


async def test_an_answer_that_is_not_read_is_under_way_for_a_while_and_then_makes_room(path: Path) -> None:
    for stuck, welcome in ((30.0, False), (0.0, True)):
        limits = WireLimits(connections=1, unsent=1 << 20, stuck=stuck)
        async with Desk().serve(path, limits), calling(path) as (greedy,):
            greedy.writer.transport.pause_reading()  # type: ignore[attr-defined]  # the stubs know only the base class
            greedy.writer.write(LARGE)
            await greedy.writer.drain()
            await asyncio.sleep(0)
            if not welcome:
                assert not await answered(path)
            while welcome and not await answered(path):
                await asyncio.sleep(0)


async def test_an_answer_that_is_never_read_holds_no_connection_for_ever(path: Path) -> None:
    limits = WireLimits(idle=0.05, stuck=0.1, unsent=1 << 20)
    async with Desk().serve(path, limits), calling(path) as (greedy,):
        assert await greedy.is_answered()
        greedy.writer.transport.pause_reading()  # type: ignore[attr-defined]  # the stubs know only the base class
        both_ends = len(os.listdir("/proc/self/fd"))
        greedy.writer.write(LARGE)
        while len(os.listdir("/proc/self/fd")) >= both_ends:
            await asyncio.sleep(0.01)


@pytest.fixture
def holding() -> Iterator[Callable[[Path, int], subprocess.Popen[bytes]]]:
    """Another process that makes so many connections and keeps them."""
    children: list[subprocess.Popen[bytes]] = []

    def hold(path: Path, count: int) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", HOLD, str(path), str(count)]
        children.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return children[-1]

    yield hold
    for child in children:
        child.communicate(timeout=60)


async def test_a_process_that_holds_many_gives_way_before_one_that_holds_few(
    path: Path, holding: Callable[[Path, int], subprocess.Popen[bytes]]
) -> None:
    async with Desk().serve(path, WireLimits(connections=6)), calling(path) as (oldest,):
        assert await oldest.is_answered()
        child = holding(path, 5)
        assert child.stdout
        assert await asyncio.to_thread(child.stdout.readline) == b"held\n"
        for _ in range(3):
            assert await answered(path)
        assert await oldest.is_answered()


async def test_a_client_that_was_hung_up_on_while_it_asked_nothing_calls_again(path: Path) -> None:
    def work() -> list[int]:
        with Client(path) as first, Client(path) as second:
            return [client.ask("echo", n=n)["n"] for n, client in enumerate((first, second, first, second))]

    async with Desk().serve(path, WireLimits(connections=1)):
        assert await asyncio.to_thread(work) == [0, 1, 2, 3]


async def test_five_hundred_clients_at_once_wait_their_turn_and_say_so(path: Path) -> None:
    said: list[str] = []

    def work(n: int) -> int:
        with Client(path, say=said.append) as client:
            return int(client.ask("slow", n=n)["slow"])

    crowd, loop = ThreadPoolExecutor(500), asyncio.get_running_loop()
    async with Desk().serve(path):
        answers = await asyncio.gather(*(loop.run_in_executor(crowd, work, n) for n in range(500)))
    crowd.shutdown()
    assert answers == [1] * 500
    assert set(said) == {"many others are asking this daemon; waiting for a turn …"}
    assert len(said) <= 500
