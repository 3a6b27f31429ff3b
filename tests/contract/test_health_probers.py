"""What every prober of processes' health promises: an answer in time, or none, and never an exception."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.health_prober import LocalHealthProber
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.memory.executors import MemoryHost
from pulse_adapters.memory.network import MemoryProber
from pulse_core.ports.health import HealthProber
from pulse_core.settings.processes import ProcessSettings


@dataclass
class Server:
    """A prober, a process that it asks, and how to end what answers."""

    prober: HealthProber
    process: ProcessSettings
    end: Callable[[], object]


@pytest.fixture(params=["memory", "local"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        process = ProcessSettings(name="gateway", start=("x",), tcp=address)
        if request.param == "memory":
            host = MemoryHost()
            host.start("gateway")
            yield Server(host, process, lambda: host.kill("gateway"))
            return
        prober = LocalHealthProber(
            spawner := Spawner(), MemoryProber(), LocalCommandProber(spawner, str(tmp_path))
        )
        yield Server(prober, process, listening.close)
        await prober.close()
        spawner.close()


async def test_what_serves_answers(server: Server) -> None:
    answer = await asyncio.wait_for(server.prober.ask(server.process, None), 60)
    assert answer.ok is True
    assert "answers" in answer.detail


async def test_what_does_not_serve_is_an_answer_and_no_exception(server: Server) -> None:
    server.end()
    answer = await asyncio.wait_for(server.prober.ask(server.process, None), 60)
    assert answer.ok is False
    assert "does not answer" in answer.detail


async def test_many_are_asked_at_the_same_time(server: Server) -> None:
    answers = await asyncio.gather(*(server.prober.ask(server.process, None) for _ in range(20)))
    assert all(answer.ok for answer in answers)
