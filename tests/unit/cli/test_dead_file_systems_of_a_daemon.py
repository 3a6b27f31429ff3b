"""What a file system that does not answer may hold up of a daemon: neither its loop nor its end."""

import asyncio
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulse_adapters.workers import file_threads
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.home import HomeLayout
from pulse_core.model.event import Head
from pulse_core.settings.telemetry import AnchorSettings
from upulse_cli.wiring import anchors

ENDS = """
import asyncio, threading
from upulse_cli import serve

async def live():
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    serve.end_soon()

serve.LAST_MOMENT = 0.1
asyncio.run(live())
"""


def test_a_thread_that_waits_for_ever_does_not_keep_the_daemon(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", ENDS], cwd=tmp_path, timeout=60).returncode == 0


async def test_an_anchor_that_does_not_answer_holds_up_nothing_and_nothing_counts_as_anchored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended, lines, said = threading.Event(), list[str](), asyncio.Queue[str]()

    def add(_: Path, line: str, before: str) -> bool:
        mended.wait(60)
        lines.append(line)
        return len(lines) == 1

    monkeypatch.setattr(anchors, "add_to_file", add)
    monkeypatch.setattr(anchors, "FileThreads", partial(FileThreads, 0.0))
    # what another test has mounted is none of this one's
    monkeypatch.setattr(file_threads, "RecentMounts", lambda: lambda: False)
    log: Any = SimpleNamespace(host="x", head=Head(1, b"1"))
    clock: Any = SimpleNamespace(now=lambda: SimpleNamespace(at=1))
    nothing: Any = None
    begun, told = list[str](), asyncio.Event()

    async def changed(_: str, words: str) -> None:
        begun.append(words)
        told.set()

    write = anchors.anchoring(
        HomeLayout(tmp_path / "home"),
        log,
        clock,
        nothing,
        nothing,
        lambda _, words: said.put_nowait(words),
        changed,
        lambda: [str(tmp_path / "anchor")],
        nothing,
        lambda: None,
    )
    writing = asyncio.ensure_future(
        write(AnchorSettings.model_construct(file=str(tmp_path / "anchor"), every=1_000))
    )
    assert "does not answer" in await said.get()
    log.head = Head(2, b"2")
    assert "does not answer" in await said.get()
    mended.set()
    async with asyncio.timeout(60):
        while len(set(lines)) < 2:  # the one that waited, and then the head as it is by now
            await asyncio.sleep(0.001)
        await told.wait()
    assert "begun at row 2" in "".join(begun)
    writing.cancel()
