"""The metrics process as the daemon keeps it: heard, and started again whatever it does."""

import asyncio
import sys
from pathlib import Path

import pytest

from pulse_adapters.metrics import sidecars
from pulse_adapters.metrics.sidecars import metrics_program, run_metrics, supervise_metrics
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.worker import Program
from pulse_core.settings.telemetry import MetricsSettings


def python(code: str) -> Program:
    return Program((sys.executable, "-c", code), inherited_environment())


async def test_complaints_are_passed_on_and_the_rest_is_last_words() -> None:
    said: list[tuple[str, str]] = []
    code = "from pulse_adapters.workers import child_side\nchild_side.send({'why': 'the port is in use'})\n"
    code += "print('Traceback …')\nprint('Oops: no')\nexit(1)"
    end = await run_metrics(python(code), lambda whose, words: said.append((whose, words)))
    assert end == "ended with status 1: Traceback … Oops: no"
    assert said == [("metrics", "the port is in use")]
    end = await run_metrics(Program(("/no/such/program",), {}), lambda *_: None)
    assert end == "cannot be started (No such file or directory)"
    end = await run_metrics(python("import os; os.write(3, b'nonsense'); input()"), lambda *_: None)
    assert end.startswith("said a message of")


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
    monkeypatch.setattr(sidecars, "run_metrics", over)
    monkeypatch.setattr("asyncio.sleep", noted)
    metrics = MetricsSettings(listen="127.0.0.1:1")
    with pytest.raises(asyncio.CancelledError):
        await supervise_metrics(tmp_path, metrics, lambda whose, words: said.append(words))
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert set(said) == {"its process ended with exit 1; it is started again"}


def test_every_setting_of_metrics_reaches_the_process(tmp_path: Path) -> None:
    metrics = MetricsSettings.model_validate(
        {"listen": "127.0.0.1:9464", "textfile": "/x.prom", "every": "90s", "otlp": "http://127.0.0.1:4318/"}
    )
    words = metrics_program(tmp_path, metrics)
    assert words.argv[-10:] == (
        *("--home", str(tmp_path), "--every", "90.0", "--listen", "127.0.0.1:9464"),
        *("--textfile", "/x.prom", "--otlp", "http://127.0.0.1:4318/"),
    )


async def test_without_anything_to_serve_there_is_no_process(tmp_path: Path) -> None:
    nothing = MetricsSettings(every=1_000_000)
    await asyncio.wait_for(supervise_metrics(tmp_path, nothing, lambda whose, words: None), 60)
