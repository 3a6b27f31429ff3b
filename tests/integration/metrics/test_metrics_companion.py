"""A child beside the daemon: heard, told, and ended whatever it does."""

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from pulse_adapters.metrics import sidecars
from pulse_adapters.metrics.companion import Companion, companion
from pulse_adapters.metrics.sidecars import complained, is_wanted, keep_measuring, measuring, one_life
from pulse_core.settings import MetricsSettings


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


ECHO = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"


async def test_it_is_told_and_heard_line_by_line() -> None:
    async with companion(*python(ECHO)) as child:
        assert child.tell("one")
        assert child.tell("two")
        assert [await child.line(), await child.line()] == ["one", "two"]
        pid = child.pid
    assert not psutil.pid_exists(pid)
    assert child.end == "ended with exit 0"


async def test_its_last_words_and_its_end_are_known() -> None:
    async with companion(
        *python("import sys; print('half a'); sys.stderr.write('word\\n'); sys.exit(3)")
    ) as child:
        assert sorted([str(await child.line()), str(await child.line())]) == ["half a", "word"]
        assert await child.line() is None
    assert child.end == "ended with exit 3"


async def until_gone(pid: int) -> None:
    """It was killed; the kernel may take a moment to end it."""
    async with asyncio.timeout(10):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)


async def test_one_that_does_not_go_is_killed_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_adapters.metrics.companion.PATIENCE_S", 0.2)
    code = "import subprocess, time\nprint(subprocess.Popen(['sleep', '9876']).pid, flush=True)\ntime.sleep(9876)"
    async with companion(*python(code)) as child:
        grandchild = int(str(await child.line()))
    assert child.end == "was killed by SIGKILL"
    await until_gone(grandchild)


async def test_one_that_rages_fills_no_memory() -> None:
    async with companion(*python("while True: print('x' * 100)")) as child:
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            while unheard(child) < 100:
                await asyncio.sleep(0.01)
        for _ in range(100):
            await asyncio.sleep(0)
        assert unheard(child) <= 101


def unheard(child: Companion) -> int:
    return child._lines.qsize()


async def test_one_that_reads_nothing_is_not_waited_for() -> None:
    async with companion(*python("import time; time.sleep(9876)")) as child:
        async with asyncio.timeout(10):
            while child.tell("x" * 10_000):
                await asyncio.sleep(0)
        await kill(child)


async def kill(child: Companion) -> None:
    psutil.Process(child.pid).kill()
    assert await child.line() is None


async def test_what_systemd_tells_the_daemon_is_not_for_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/x")
    monkeypatch.setenv("INVOCATION_ID", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "kept")
    async with companion(*python("import os; print(*sorted(os.environ))")) as child:
        names = str(await child.line()).split()
    assert not {"NOTIFY_SOCKET", "INVOCATION_ID"} & set(names)
    assert "OTEL_EXPORTER_OTLP_HEADERS" in names


async def test_complaints_are_passed_on_and_the_rest_is_last_words() -> None:
    said: list[tuple[str, str]] = []
    code = "import json\nprint(json.dumps('the port is in use'))\nprint('Traceback …')\nprint('Oops: no')\nexit(1)"
    end = await one_life(python(code), lambda whose, words: said.append((whose, words)))
    assert end == "ended with exit 1: Oops: no"
    assert said == [("metrics", "the port is in use")]
    assert (
        await one_life(("/no/such/program",), lambda *_: None)
        == "cannot be started (No such file or directory)"
    )
    assert complained("7") is None


async def test_one_that_ends_at_once_is_started_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 11:
            raise asyncio.CancelledError

    async def over(*_: object) -> str:
        return "ended with exit 1"

    said: list[str] = []
    monkeypatch.setattr(sidecars, "one_life", over)
    monkeypatch.setattr("asyncio.sleep", noted)
    metrics = MetricsSettings(listen="127.0.0.1:1")
    with pytest.raises(asyncio.CancelledError):
        await keep_measuring(tmp_path, metrics, lambda whose, words: said.append(words))
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert set(said) == {"its process ended with exit 1; it is started again"}


def test_every_setting_of_metrics_reaches_the_process(tmp_path: Path) -> None:
    metrics = MetricsSettings.model_validate(
        {"listen": "127.0.0.1:9464", "textfile": "/x.prom", "every": "90s", "otlp": "http://127.0.0.1:4318/"}
    )
    words = measuring(tmp_path, metrics)
    assert words[-10:] == (
        *("--home", str(tmp_path), "--every", "90.0", "--listen", "127.0.0.1:9464"),
        *("--textfile", "/x.prom", "--otlp", "http://127.0.0.1:4318/"),
    )
    assert is_wanted(metrics)
    assert not is_wanted(MetricsSettings(every=1_000_000))
