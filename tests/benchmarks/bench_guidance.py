"""Guidance: what a check costs an agent over HTTP while eight of them ask, each once in a tenth of a second."""

import asyncio
import json
import re
import socket
import time
from pathlib import Path

import psutil

from pulse_core.guidance.protocol import Change, make_event_id
from tests.benchmarks.harness import directory
from tests.benchmarks.table import Row, spread
from tests.unit.guidance.test_guidance_command import serving

IMPORTED = 100_000
POLLERS, CALLS, PAUSE_S = 8, 100, 0.1
CHECK = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "pulse_should_interrupt", "arguments": {}},
    }
)
REQUEST = (
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(CHECK)}\r\n\r\n{CHECK}"
).encode()
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


async def poll(port: int, number: int) -> list[float]:
    """Milliseconds of each check of one poller, which costs next to nothing itself: all of them share a loop here."""
    took = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(PAUSE_S * number / POLLERS)
    for _ in range(CALLS):
        began = time.perf_counter()
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        assert head.startswith(b"HTTP/1.1 200")
        assert length
        await reader.readexactly(int(length[1]))
        took.append((time.perf_counter() - began) * 1_000)
        await asyncio.sleep(PAUSE_S)
    writer.close()
    return took


async def polled(port: int) -> list[float]:
    """What the checks of all pollers took."""
    found = await asyncio.gather(*(poll(port, number) for number in range(POLLERS)))
    return [one for some in found for one in some[1:]]


def imported(folder: Path) -> tuple[float, list[float]]:
    """Seconds until the server of a project answers whose earlier record has so many changes, and what its pollers' checks
    took then."""
    (project := folder / "project" / ".pulse").mkdir(parents=True)
    start = 1_800_000_000_000_000
    changes = (
        Change(
            number, make_event_id(start + number, f"{number:08x}"), start, "modified", "task.md", "ab" * 32, 7
        )
        for number in range(1, IMPORTED + 1)
    )
    (project / "events.jsonl").write_text("".join(change.line() for change in changes))
    began = time.perf_counter()
    with serving(folder / "home", project.parent) as (url, _):
        port = int(url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(REQUEST)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        taken_over = time.perf_counter() - began
        return taken_over, asyncio.run(polled(port))


def run() -> list[Row]:
    """Measure."""
    with directory() as folder:
        taken_over, took_then = imported(Path(folder))
    with directory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        with serving(Path(folder) / "home", project) as (url, child):
            took = asyncio.run(polled(int(url.split(":")[2].split("/")[0])))
            memory = psutil.Process(child.pid).memory_info().rss / 2**20
    return [
        Row("a check over MCP, 8 pollers", "p50 ≤ 5 ms, p99 ≤ 20 ms", spread(took)),
        Row(f"the same with {IMPORTED:,} events", "p50 ≤ 5 ms", spread(took_then)),
        Row(f"{IMPORTED:,} earlier events taken over, with the start", "< 5 s", f"{taken_over:.1f} s"),
        Row("memory of the MCP server", "", f"{memory:.0f} MiB"),
    ]
