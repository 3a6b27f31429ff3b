"""Signs of life outwards: sent while there is life, and a failure is said once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pulse_adapters.memory.network import MemoryProber
from pulse_adapters.metrics.sidecars import Heartbeat
from pulse_adapters.network.prober import ChildProber
from pulse_core.ports.prober import Prober, ProbeRequest
from pulse_core.settings.telemetry import HeartbeatSettings
from tests.integration.metrics.metrics_scene import free_port, receiving
from tests.integration.network.network_servers import OK, floods, page_server, says, stalls


@asynccontextmanager
async def beating(heart: Heartbeat) -> AsyncIterator[None]:
    task = asyncio.create_task(heart.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class Body:
    """What a heart beats in: loops that turn or not, without taking time, and an ear for complaints."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober
        self.turns, self.asked = True, 0
        self.said: list[str] = []

    async def is_turning(self, seconds: float) -> bool:
        self.asked += 1
        await asyncio.sleep(0.01)
        return self.turns

    def heart(self, url: str) -> Heartbeat:
        settings = HeartbeatSettings.model_validate({"url": url, "every": "1s"})
        return Heartbeat(
            settings,
            self._prober,
            self.is_turning,
            lambda whose, words: self.said.append(f"{whose}: {words}"),
        )


async def until(holds: Any, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
async def prober() -> AsyncIterator[ChildProber]:
    one = ChildProber()
    yield one
    one.close()


@pytest.fixture
def beats() -> Iterator[tuple[int, list[int]]]:
    """A server's port, and how it answers from now on; what it got is behind that."""
    answers = [200]

    def answer(_: bytes) -> int:
        answers.append(answers[0])
        return answers[0]

    with receiving(answer) as port:
        yield port, answers


async def test_it_beats_while_the_loops_turn_and_not_otherwise(
    prober: ChildProber, beats: tuple[int, list[int]]
) -> None:
    port, got = beats
    body = Body(prober)
    async with beating(body.heart(f"http://127.0.0.1:{port}/")):
        await until(lambda: len(got) > 5)
        body.turns = False
        await until(lambda: body.said)
        count, asked = len(got), body.asked
        await until(lambda: body.asked > asked + 20)
        assert len(got) == count
        body.turns = True
        await until(lambda: len(got) > count)
    assert body.said == ["heartbeat: the loops do not turn, so none is sent"]


async def test_a_failure_is_said_once_and_again_after_it_was_over(
    prober: ChildProber, beats: tuple[int, list[int]]
) -> None:
    port, got = beats
    got[0] = 500
    body = Body(prober)
    async with beating(body.heart(f"http://127.0.0.1:{port}/")):
        await until(lambda: len(got) > 10)
        assert body.said == ["heartbeat: it could not be sent: it was answered with 500"]
        got[0] = 200
        await until(lambda: got[-3:] == [200] * 3)
        got[0] = 404
        await until(lambda: got[-3:] == [404] * 3)
    assert body.said[1:] == ["heartbeat: it could not be sent: it was answered with 404"]


async def test_without_a_url_nobody_beats() -> None:
    prober = MemoryProber()
    heart = Heartbeat(HeartbeatSettings(), prober, Body(prober).is_turning, lambda whose, words: None)
    await asyncio.wait_for(heart.run(), 60)


async def failure(prober: Prober, url: str) -> str:
    """What is said of the first heartbeat."""
    body = Body(prober)
    async with beating(body.heart(url)):
        await until(lambda: body.said)
    return body.said[0].removeprefix("heartbeat: ")


async def test_every_failure_is_told_without_the_url(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = f"http://127.0.0.1:{free_port()}/secret-token"
    refused = "it could not be sent: the connection is refused"
    assert await failure(prober, secret) == refused
    monkeypatch.setenv("BEAT_URL", secret)
    assert await failure(prober, "env:BEAT_URL") == refused
    for odd in ("file:///etc/secret", "http://[secret/", "http://[::1]/secret token\n", "http://x:secret/"):
        monkeypatch.setenv("BEAT_URL", odd)
        assert await failure(prober, "env:BEAT_URL") == "what BEAT_URL holds is no http or https URL"
    monkeypatch.delenv("BEAT_URL")
    unset = "the environment variable BEAT_URL of [heartbeat] url is not set"
    assert await failure(prober, "env:BEAT_URL") == unset


async def test_a_server_that_never_answers_costs_no_more_than_its_time(prober: ChildProber) -> None:
    async with page_server(stalls) as port:
        assert "did not answer within 1 s" in await failure(prober, f"http://127.0.0.1:{port}/")


async def test_a_certificate_that_is_not_to_be_trusted_is_no_sign_of_life(prober: ChildProber) -> None:
    async with page_server(says(OK), "stranger") as port:
        assert "not to be trusted" in await failure(prober, f"https://127.0.0.1:{port}/")


async def test_a_redirect_is_followed(prober: ChildProber) -> None:
    async with page_server(says(OK)) as port:
        moved = f"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n"
        async with page_server(says(moved.encode())) as old:
            request = ProbeRequest("http", f"http://127.0.0.1:{old}/", 10_000_000)
            assert (await prober.ask(request)).status == 301
            assert (await prober.ask(request._replace(follows=True))).status == 200
        endless = moved.replace("Content-Length: 0\r\n", "").encode()
        async with page_server(says(endless, then=floods)) as old:
            request = ProbeRequest("http", f"http://127.0.0.1:{old}/", 10_000_000, follows=True)
            assert (await prober.ask(request)).status == 200
    async with page_server(says(b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")) as here:
        request = ProbeRequest("http", f"http://127.0.0.1:{here}/", 10_000_000, follows=True)
        assert (await prober.ask(request)).detail == "it leads on more than 20 times"
