"""Signs of life outwards: sent while there is life, and a failure is said once."""

import asyncio
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from pulse_adapters.metrics.heartbeat import send_heartbeat
from pulse_adapters.metrics.sidecars import Heartbeat, SidecarProblem
from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.worker import module_program
from pulse_core.settings import HeartbeatSettings
from tests.integration.metrics.metrics_scene import free_port, receiving


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

    def __init__(self) -> None:
        self.turns, self.asked = True, 0
        self.said: list[str] = []

    async def is_turning(self, seconds: float) -> bool:
        self.asked += 1
        await asyncio.sleep(0.01)
        return self.turns

    def heart(self, url: str) -> Heartbeat:
        settings = HeartbeatSettings.model_validate({"url": url, "every": "1s"})
        return Heartbeat(
            settings, self.is_turning, lambda whose, words: self.said.append(f"{whose}: {words}")
        )


async def until(holds: Any, seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.fixture
def beats() -> Iterator[tuple[int, list[int]]]:
    """A server's port, and how it answers from now on; what it got is behind that."""
    answers = [200]

    def answer(_: bytes) -> int:
        answers.append(answers[0])
        return answers[0]

    with receiving(answer) as port:
        yield port, answers


async def test_it_beats_while_the_loops_turn_and_not_otherwise(beats: tuple[int, list[int]]) -> None:
    port, got = beats
    body = Body()
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


async def test_a_failure_is_said_once_and_again_after_it_was_over(beats: tuple[int, list[int]]) -> None:
    port, got = beats
    got[0] = 500
    body = Body()
    async with beating(body.heart(f"http://127.0.0.1:{port}/")):
        await until(lambda: len(got) > 10)
        assert body.said == ["heartbeat: it could not be sent: it was answered with 500"]
        got[0] = 200
        await until(lambda: got[-3:] == [200] * 3)
        got[0] = 404
        await until(lambda: got[-3:] == [404] * 3)
    assert body.said[1:] == ["heartbeat: it could not be sent: it was answered with 404"]


def last_word(one: psutil.Process) -> str:
    """The last word of its command line; nothing if it has died and nobody has reaped it yet."""
    try:
        return one.cmdline()[-1]
    except (psutil.NoSuchProcess, IndexError):
        return ""


async def test_a_child_that_is_killed_or_stopped_is_replaced(
    beats: tuple[int, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulse_adapters.metrics.sidecars.MARGIN_S", 0.2)
    monkeypatch.setattr("pulse_adapters.metrics.sidecars.ANSWER_S", 0.2)
    port, got = beats
    body = Body()
    async with beating(body.heart(f"http://127.0.0.1:{port}/")):
        for sign, words in ((signal.SIGKILL, "died"), (signal.SIGSTOP, "hung")):
            await until(lambda: got[-1] == 200 and len(got) > 3)
            (child,) = [one for one in psutil.Process().children() if "metrics.heartbeat" in last_word(one)]
            child.send_signal(sign)
            await until(lambda words=words: any(words in one for one in body.said))
            count = len(got)
            await until(lambda count=count: len(got) > count + 2)


async def test_without_a_url_nobody_beats() -> None:
    heart = Heartbeat(HeartbeatSettings(), Body().is_turning, lambda whose, words: None)
    await asyncio.wait_for(heart.run(), 5)


async def test_the_child_answers_each_time_and_ends_with_its_requests(beats: tuple[int, list[int]]) -> None:
    port, _ = beats
    async with conversation(
        module_program("pulse_adapters.metrics.heartbeat"), SidecarProblem, farewell=20.0
    ) as child:
        for _ in range(2):
            child.tell({"url": f"http://127.0.0.1:{port}/", "seconds": 5})
            assert await child.next() == SidecarProblem("")
    assert await child.end() == "ended with status 0"


def test_every_failure_is_one_line_without_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"http://127.0.0.1:{free_port()}/secret-token"
    assert send_heartbeat(secret, 1) == "Connection refused"
    assert "secret" not in send_heartbeat("http://127.0.0.1:1/secret token\n", 1)
    assert "secret" not in send_heartbeat("http://[secret/", 1)
    monkeypatch.setenv("BEAT_URL", secret)
    assert send_heartbeat("env:BEAT_URL", 1) == "Connection refused"
    monkeypatch.setenv("BEAT_URL", "file:///etc/passwd")
    assert send_heartbeat("env:BEAT_URL", 1) == "what BEAT_URL holds is no http or https URL"
    monkeypatch.delenv("BEAT_URL")
    assert (
        send_heartbeat("env:BEAT_URL", 1) == "the environment variable BEAT_URL of [heartbeat] url is not set"
    )


def test_a_server_that_never_answers_costs_no_more_than_its_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert "timed out" in send_heartbeat(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.2)


def test_an_expired_certificate_is_no_sign_of_life(tmp_path: Path) -> None:
    assert "CERTIFICATE_VERIFY_FAILED" in refused_certificate(tmp_path)


def refused_certificate(place: Path) -> str:
    """What is said of a server whose certificate nobody has signed."""
    import ssl
    import threading

    pem = place / "self.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", pem, "-out", f"{pem}.crt"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pem}.crt", pem)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def shake() -> None:
            connection, _ = listening.accept()
            with connection:
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    return

        threading.Thread(target=shake, daemon=True).start()
        return send_heartbeat(f"https://127.0.0.1:{listening.getsockname()[1]}/", 5)
