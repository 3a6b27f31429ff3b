"""The child that asks: started when needed, replaced when it dies or hangs, gone with the daemon."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from pulse_adapters.network import prober as room
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.workers.proc import start_time_of
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from tests.integration.network.network_servers import OK, page_server, says, stalls

SECOND = 1_000_000
LONG, SHORT = 30.0, 0.3


def page(port: int, seconds: float = 5) -> ProbeRequest:
    return ProbeRequest("http", f"http://127.0.0.1:{port}/", round(seconds * SECOND))


def lives(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    return Path(f"/proc/{pid}").exists()


def runs(pid: int) -> bool:
    """Whether there is such a process, and no zombie."""
    return start_time_of(pid) is not None


async def dead(pid: int) -> None:
    """Wait until this process has ended."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    handle = os.pidfd_open(pid)
    loop.add_reader(handle, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def begun(prober: ChildProber, port: int) -> int:
    """A child that has answered."""
    assert (await prober.ask(page(port))).status == 200
    assert prober.pid is not None
    return prober.pid


async def test_there_is_no_child_before_there_is_a_question(prober: ChildProber) -> None:
    assert prober.pid is None
    async with page_server(says(OK)) as port:
        first = await begun(prober, port)
        assert await begun(prober, port) == first


async def test_many_questions_do_not_wait_for_each_other(prober: ChildProber) -> None:
    async with page_server(says(OK)) as good, page_server(stalls) as bad:
        slow = [prober.ask(page(bad, 2)) for _ in range(20)]
        answers = await asyncio.gather(*(prober.ask(page(good)) for _ in range(20)))
        assert not any(answer.done() for answer in slow)
        assert {answer.status for answer in answers} == {200}
        assert {answer.trouble for answer in await asyncio.gather(*slow)} == {Trouble.STALLED}


async def test_a_child_that_is_killed_is_replaced_and_the_question_is_put_again(prober: ChildProber) -> None:
    seen: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert prober.pid is not None
        seen.append(prober.pid)
        if len(seen) == 1:
            os.kill(prober.pid, signal.SIGKILL)
            return
        await says(OK)(reader, writer)

    async with page_server(serve) as port:
        answer = await prober.ask(page(port))
    assert answer.status == 200
    assert len(set(seen)) == 2
    assert not lives(seen[0])


async def test_a_question_that_kills_is_put_twice_and_no_more(prober: ChildProber) -> None:
    seen: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert prober.pid is not None
        seen.append(prober.pid)
        os.kill(prober.pid, signal.SIGKILL)

    async with page_server(serve) as port, page_server(says(OK)) as good:
        answer = await prober.ask(page(port))
        assert answer == ProbeResult(Trouble.UNASKED, "the process that asks died, and another one after it")
        assert len(seen) == 2
        await begun(prober, good)


async def test_a_child_that_hangs_is_ended_and_replaced(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_server(says(OK)) as port:
        monkeypatch.setattr(room, "MARGIN_S", LONG)
        hung = await begun(prober, port)
        os.kill(hung, signal.SIGSTOP)
        monkeypatch.setattr(room, "MARGIN_S", SHORT)
        answer = await prober.ask(page(port, 0.1))
        assert answer == ProbeResult(Trouble.UNASKED, "the process that asks hung, and was ended")
        monkeypatch.setattr(room, "MARGIN_S", LONG)
        assert await begun(prober, port) != hung
    assert not lives(hung)


LEAVES = """
import asyncio, os, signal, sys
from pulse_adapters.network.prober import ChildProber
from pulse_core.ports.prober import ProbeRequest

async def main():
    prober = ChildProber()
    await prober.ask(ProbeRequest("http", sys.argv[1], 5_000_000))
    os.kill(prober.pid, signal.SIGSTOP)
    print(prober.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_child_that_hangs_ends_with_a_daemon_that_is_killed() -> None:
    async with page_server(says(OK)) as port:
        argv = [sys.executable, "-c", LEAVES, f"http://127.0.0.1:{port}/"]
        ran = await asyncio.to_thread(subprocess.run, argv, stdout=subprocess.PIPE, timeout=30, check=False)
    assert ran.returncode == -signal.SIGKILL
    child = int(ran.stdout)
    try:
        async with asyncio.timeout(60):
            while runs(child):
                await asyncio.sleep(0.01)
    finally:
        if runs(child):
            os.kill(child, signal.SIGKILL)


async def test_a_child_that_nobody_asks_any_more_is_ended(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_server(says(OK)) as port:
        first = await begun(prober, port)
        monkeypatch.setattr(room, "IDLE_S", 0.5)
        await begun(prober, port)
        await dead(first)
        assert prober.pid is None
        assert await begun(prober, port) != first


async def test_closing_ends_the_child_and_tells_who_waits(prober: ChildProber) -> None:
    async with page_server(says(OK)) as port, page_server(stalls) as bad:
        pid = await begun(prober, port)
        waiting = prober.ask(page(bad))
        prober.close()
        assert (await waiting).trouble is Trouble.UNASKED
        assert not lives(pid)


async def test_nonsense_of_the_child_is_its_own_fault_and_another_one_is_asked(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that answers what nobody understands is ended, as one that dies is."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nbody = b'{\"id\": -1, \"took_ms\": 1}'\nos.write(3, len(body).to_bytes(4, 'big') + body)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with page_server(says(OK)) as port:
        answer = await prober.ask(page(port))
    assert answer == ProbeResult(Trouble.UNASKED, "the process that asks died, and another one after it")


async def test_the_child_is_small(prober: ChildProber) -> None:
    async with page_server(says(OK)) as port:
        pid = await begun(prober, port)
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        assert 0 < resource.prlimit(pid, resource.RLIMIT_DATA)[1] < 1 << 30
    assert pages * os.sysconf("SC_PAGE_SIZE") < 45 << 20


@pytest.mark.parametrize(("about", "package"), [("http", "httpx"), ("dns", "dns")])
async def test_a_package_that_is_not_installed_is_named_with_the_way_to_get_it(
    prober: ChildProber,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    about: Literal["dns", "http"],
    package: str,
) -> None:
    missing = f"raise ModuleNotFoundError(\"No module named '{package}'\")"
    (tmp_path / f"{package}.py").write_text(missing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = await prober.ask(ProbeRequest(about, "http://127.0.0.1:1/", SECOND, ("127.0.0.1",)))
    words = f"No module named '{package}'; install it with: pip install dnspython httpx"
    assert (answer.trouble, answer.detail) == (Trouble.UNASKED, words)
