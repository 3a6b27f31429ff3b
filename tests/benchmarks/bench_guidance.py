"""Guidance: what a check costs an agent over HTTP while eight of them ask, each once in a tenth of a second."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.benchmarks.harness import directory
from tests.benchmarks.table import Row, spread
from tests.unit.guidance.test_guidance_command import serving

POLLERS, CALLS, PAUSE_S = 8, 100, 0.1
HEADERS = {"Accept": "application/json, text/event-stream"}
CHECK: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "pulse_should_interrupt", "arguments": {}},
}


async def poll(url: str, number: int) -> list[float]:
    """Milliseconds of each check of one poller."""
    took = []
    async with httpx.AsyncClient() as client:
        await asyncio.sleep(PAUSE_S * number / POLLERS)
        for _ in range(CALLS):
            began = time.perf_counter()
            answer = await client.post(url, headers=HEADERS, json=CHECK)
            took.append((time.perf_counter() - began) * 1_000)
            assert answer.status_code == 200
            await asyncio.sleep(PAUSE_S)
    return took


async def polled(url: str) -> list[float]:
    """What the checks of all pollers took."""
    found = await asyncio.gather(*(poll(url, number) for number in range(POLLERS)))
    return [one for some in found for one in some[1:]]


def run() -> list[Row]:
    """Measure."""
    with directory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        with serving(Path(folder) / "home", project) as (url, child):
            took = asyncio.run(polled(url))
            memory = psutil.Process(child.pid).memory_info().rss / 2**20
    return [
        Row("a check over MCP, 8 pollers", "p50 ≤ 5 ms, p99 ≤ 20 ms", spread(took)),
        Row("memory of the MCP server", "", f"{memory:.0f} MiB"),
    ]
