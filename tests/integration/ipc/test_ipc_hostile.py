"""Callers who mean harm, or are broken, cost little and disturb nobody."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.ipc.protocol import END
from pulse_adapters.ipc.wire import WireLimits
from tests.integration.ipc.ipc_desk import LARGE, Desk, opened

ASK = b'{"v": 1, "op": "echo", "n": 1}\n'
FOR_EVER = b'{"v": 1, "op": "for-ever"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path / "run" / "pulse.sock"


@asynccontextmanager
async def connected(path: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await opened(path, limit=1 << 22)
    try:
        async with asyncio.timeout(60):
            yield reader, writer
    finally:
        writer.close()


async def told(reader: asyncio.StreamReader) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await reader.readline())
    return found


async def still_answers(path: Path) -> bool:
    async with connected(path) as (reader, writer):
        writer.write(ASK)
        return bool((await told(reader))["item"]["n"] == 1)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"\x00\xff\xfe garbage \x80\n",
        b"[" * 200_000 + b"\n",
        b"1" * 10_000 + b"\n",
        b"[]\n",
        b"null\n",
        b'{"v": 1}\n',
        b'{"v": true, "op": "echo"}\n',
        b'{"v": 0, "op": "echo"}\n',
        b'{"v": 1, "op": ["echo"]}\n',
        b'{"v": 1, "op": "echo", "n": NaN}\n',
        b'{"v": 1, "op": "echo", "n": -1e999}\n',
        b'{"v": 1, "op": "echo", "n": ' + b"[" * 64 + b"]" * 64 + b"}\n",
        b'{"v": 1, "op": "echo", "n": "\\uD800"}\n',
        b'{"v": 1, "op": "echo"\n',
    ],
)
async def test_what_is_no_request_is_said_so_and_the_connection_goes_on(path: Path, line: bytes) -> None:
    request_handler = Desk()
    async with request_handler.serve(path), connected(path) as (reader, writer):
        writer.write(line + ASK)
        assert (await told(reader))["error"]["type"] == "BadRequest"
        assert (await told(reader))["item"]["n"] == 1
    assert not request_handler.errors


async def test_noise_never_reaches_the_handler(path: Path) -> None:
    request_handler = Desk()
    noise = random.Random(7).randbytes(200_000)
    async with request_handler.serve(path):
        async with connected(path) as (reader, writer):
            writer.write(noise + b"\n")
            for _ in range(noise.count(b"\n") + 1):
                assert "error" in await told(reader)
        assert not request_handler.peers
        assert await still_answers(path)


async def test_half_a_line_waits_for_its_other_half(path: Path) -> None:
    async with Desk().serve(path), connected(path) as (reader, writer):
        for byte in ASK:
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await told(reader))["item"]["n"] == 1


async def test_a_line_may_have_a_mebibyte_and_no_more(path: Path) -> None:
    async with Desk().serve(path):
        async with connected(path) as (reader, writer):
            writer.write(ASK[:-2] + b', "text": "' + b"x" * 1_000_000 + b'"}\n')
            assert len((await told(reader))["item"]["text"]) == 1_000_000
        async with connected(path) as (reader, writer):
            writer.write(b"x" * 3_000_000)
            assert "more than 1048576 bytes" in (await told(reader))["error"]["message"]
            with pytest.raises((ConnectionError, AssertionError)):
                assert await reader.read()
        assert await still_answers(path)


async def test_idle_callers_are_dropped_even_with_half_a_line_but_not_at_work(path: Path) -> None:
    async with (
        Desk().serve(path, WireLimits(idle=0.6)),
        connected(path) as (idle, _),
        connected(path) as (half, half_writer),
        connected(path) as (works, works_writer),
    ):
        half_writer.write(ASK[:5])
        works_writer.write(b'{"v": 1, "op": "slow"}\n')
        assert await idle.read() == b""
        assert "no whole line came within 0.6 s" in (await told(half))["error"]["message"]
        assert await half.read() == b""
        assert (await told(works))["item"] == {"slow": True}


async def test_a_line_that_comes_byte_by_byte_does_not_stretch_the_time_to_idle(path: Path) -> None:
    async with Desk().serve(path, WireLimits(idle=0.1)), connected(path) as (reader, writer):
        gone = asyncio.ensure_future(reader.read())
        for _ in range(1_000):
            if gone.done() or writer.is_closing():
                break
            writer.write(b"x")
            await asyncio.wait({gone}, timeout=0.01)
        with contextlib.suppress(ConnectionError):
            assert b"no whole line came" in await asyncio.wait_for(gone, 60)


async def test_a_stream_that_is_not_read_is_bounded_and_then_dropped(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, WireLimits(stuck=0.2)), connected(path) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # the stubs know only the base class
        before = resident()
        writer.write(b'{"v": 1, "op": "flood"}\n')
        while not request_handler.ended:
            await asyncio.sleep(0.01)
        assert resident() - before < 8 << 20
        assert await still_answers(path)
    assert request_handler.ended == ["flood"]


async def test_a_large_answer_that_is_not_read_lies_in_nobody_s_memory(path: Path) -> None:
    async with Desk().serve(path, WireLimits(stuck=0.5)), connected(path) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # the stubs know only the base class
        before = resident()
        for _ in range(5):
            writer.write(b'{"v": 1, "op": "state"}\n')
            await asyncio.sleep(0.05)
        assert resident() - before < 8 << 20
        assert await still_answers(path)


async def test_nothing_is_said_in_the_midst_of_a_large_answer(path: Path) -> None:
    async with Desk().serve(path, WireLimits(beat=1e-4)), connected(path) as (reader, writer):
        writer.write(b'{"v": 1, "op": "state"}\n')
        said = bytearray()
        while not said.endswith(END):
            said += await reader.read(1 << 16)
            await asyncio.sleep(0)
        lines = [json.loads(line) for line in said.splitlines()]
        assert [one["item"]["value"] for one in lines if "item" in one] == [LARGE]


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_one_who_asks_without_end_does_not_hold_up_another(path: Path) -> None:
    async with Desk().serve(path), connected(path) as (_, writer):
        writer.write(b"{}\n" * 300_000)
        await asyncio.sleep(0)
        assert await still_answers(path)


async def test_callers_at_work_beyond_the_limit_are_told_and_later_ones_let_in(path: Path) -> None:
    request_handler = Desk()
    async with request_handler.serve(path, WireLimits(connections=3)):
        async with connected(path) as first, connected(path) as second, connected(path) as third:
            for reader, writer in (first, second, third):
                writer.write(FOR_EVER)
                assert "item" in await told(reader)
            async with connected(path) as (reader, _):
                assert "3 callers that have a request under way" in (await told(reader))["error"]["message"]
        async with asyncio.timeout(60):
            while True:
                async with connected(path) as (reader, writer):
                    writer.write(ASK)
                    if "item" in await told(reader):
                        break


async def test_hundreds_who_connect_and_vanish_leave_nothing_behind(path: Path) -> None:
    async with Desk().serve(path):
        before = len(os.listdir("/proc/self/fd"))
        for n in range(500):
            _, writer = await opened(path)
            if n % 3:
                writer.write(ASK[: n % len(ASK)])
            writer.close()
        async with asyncio.timeout(60):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.01)
        assert await still_answers(path)


async def test_of_a_crowd_that_asks_at_once_one_is_answered_in_a_turn_of_the_loop(path: Path) -> None:
    request_handler, answered = Desk(), [0]
    async with request_handler.serve(path):
        with contextlib.ExitStack() as crowd:
            callers = [crowd.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(40)]
            for one in callers:
                one.connect(str(path))
                one.sendall(ASK)
            async with asyncio.timeout(60):
                for all_of_them in (40, 240):
                    while answered[-1] < all_of_them:
                        await asyncio.sleep(0)
                        answered.append(len(request_handler.peers))
                    for one in callers:  # now that all are let in
                        one.sendall(ASK * 5)
    assert max(after - before for before, after in itertools.pairwise(answered)) == 1
