"""What the tests of the host adapter do again and again."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from pulse_adapters.host.clock import SystemClock
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from tests.processes import pauses

EVENT_ID = f"0198c0de-0000-7000-8000-{os.getpid():012x}"
"""Of this test process alone: who bears the mark of an effect is searched on the whole machine."""


async def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Poll until it holds; only for what real processes do in their own time."""
    deadline, pause = time.monotonic() + seconds, pauses()
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(next(pause))


def said(path: Path) -> str:
    """What stands in a file, nothing if there is none yet."""
    return path.read_text() if path.exists() else ""


def child(*argv: str) -> int:
    """The pid of a child of this process that nobody waits for."""
    return os.posix_spawn(argv[0], argv, {})


def bury(pid: int) -> None:
    """Wait for a child that is dead already."""
    os.waitpid(pid, 0)


def wished(action: str, **params: object) -> tuple[Effect, Event]:
    """An effect and its event of just now."""
    effect = Effect(action=action, key="k", params=params)
    now = SystemClock().now()
    data = effect.model_dump_json()
    return effect, Event(1, EVENT_ID, *now, "effect", "k", "pulse", "h", None, data)


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
