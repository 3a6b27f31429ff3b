"""Connections to the servers of agents: however many there are, and whatever they do not do, the next one is answered."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import IO

import psutil
import pytest
from starlette.types import Receive, Scope, Send

from pulse_adapters.http_connections.bounded_server import PIECE, bounded_server
from tests.long_form import sampled

SERVER = """
import asyncio, resource, socket, sys
from pulse_adapters.http_connections import bounded_server
from pulse_adapters.mcp_http.http_server import serve
from starlette.responses import Response

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
bounded_server.SILENT_S = float(sys.argv[1])

async def app(scope, receive, send):
    body = b""
    while (part := await receive())["type"] == "http.request":
        body += part["body"]
        if not part["more_body"]:
            break
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    await Response(b"x" * (int(sys.argv[2]) if scope["path"] == "/large" else 2))(scope, receive, send)

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    asyncio.run(serve(app, listener))
"""
AGENTS = """
import asyncio, socket
from mcp.server.mcpserver import MCPServer
from pulse_adapters.mcp_http.http_server import serve, stateless_app

agents = stateless_app(MCPServer("it"), "/mcp", True)

async def app(scope, receive, send):
    if scope["path"] == "/fault":
        raise RuntimeError("a fault")
    await agents(scope, receive, send)

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    asyncio.run(serve(app, listener, agents))
"""
LARGE = 1 << 26
pytestmark = pytest.mark.timeout(120)


@contextmanager
def serving(
    silent: float = 30.0, server: str = SERVER, said: IO[bytes] | None = None
) -> Iterator[tuple[int, int]]:
    """A server whose clients may be silent for so long; its process and port. said: where its stderr goes."""
    argv = (sys.executable, "-c", server, str(silent), str(LARGE))
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=said)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()
            process.wait(timeout=60)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def request(path: str = "/", body: bytes = b"") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: it\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def is_answered(port: int) -> bool:
    with connected(port) as one:
        one.sendall(request())
        return one.recv(100).startswith(b"HTTP/1.1 200")


def is_closed(one: socket.socket) -> bool:
    """Whether it is closed before the timeout, after whatever was answered."""
    with suppress(ConnectionError):
        while one.recv(1 << 16):
            pass
    return True


def test_more_idle_connections_than_there_are_descriptors_keep_nobody_out() -> None:
    with serving() as (pid, port):
        idle = [connected(port) for _ in range(400)]
        assert is_answered(port)
        assert len(os.listdir(f"/proc/{pid}/fd")) < 150
        assert is_closed(idle[0])
        for one in idle:
            one.close()


@pytest.mark.parametrize("words", sampled([b"", b"POST / HTTP/1.1\r\nHost:", request(body=b"x" * 9)[:-1]], 2))
def test_who_sends_no_whole_request_is_hung_up(words: bytes) -> None:
    with serving(0.2) as (_, port), connected(port) as one:
        one.sendall(words)
        assert is_closed(one)


def test_who_never_reads_is_hung_up() -> None:
    with serving(0.5) as (pid, port), connected(port) as one:
        one.sendall(request("/large"))
        received, until = len(one.recv(1)), time.monotonic() + 30
        while any(held.raddr for held in psutil.Process(pid).net_connections()):
            assert time.monotonic() < until
        while part := one.recv(1 << 20):
            received += len(part)
        assert received < LARGE


def test_who_asks_on_before_the_answer_is_hung_up_and_next_requests_are_answered() -> None:
    with serving() as (pid, port), connected(port) as one:
        one.sendall(request("/slow"))
        with suppress(ConnectionError):
            for _ in range(1_000):
                one.sendall(request("/slow") * 1_000)
        assert is_closed(one)
        assert int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") < 150 << 20
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as other:
            for _ in range(2):
                other.request("POST", "/", body=b"x" * 100_000)
                assert other.getresponse().read() == b"xx"


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_who_hangs_up_midway_is_no_fault_and_a_fault_is_told_without_colours(
    tmp_path: Path, version: str
) -> None:
    words = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nMCP-Protocol-Version: {version}\r\nContent-Length: 50\r\n"
    )
    headers = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\r\n"
    with (tmp_path / "said").open("wb") as said, serving(server=AGENTS, said=said) as (_, port):
        for _ in range(3):
            with connected(port) as one:
                one.sendall(f"{words}{headers}{{".encode())
                one.shutdown(socket.SHUT_WR)
                assert is_closed(one)
        with connected(port) as one:
            one.sendall(request("/fault"))
            assert one.recv(100).startswith(b"HTTP/1.1 500")
    told = (tmp_path / "said").read_text()
    assert told.count("Traceback (most recent call last)") == 1, told
    assert "a fault" in told


async def test_others_have_their_turn_while_a_request_comes_in_very_many_pieces() -> None:
    turned, is_over, chunks = 0, False, b"1\r\nx\r\n" * 20_000

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def others() -> None:
        nonlocal turned
        while not is_over:
            turned += 1
            await asyncio.sleep(0)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = bounded_server(app, 1)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            while not server.started:
                await asyncio.sleep(0)
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            group.create_task(others())
            writer.write(
                b"POST / HTTP/1.1\r\nHost: it\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
            )
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            is_over = server.should_exit = True
            writer.close()
    assert turned >= len(chunks) / PIECE
