"""What somebody else knows of a home: the anchor outside of it, and the log of the engine that should be there."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.anchor import read_anchors
from pulse_core.model.event import Draft
from pulse_core.model.kinds import EnginePromoted
from tests.acceptance.conftest import Served


def written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def test_the_head_is_written_down_and_an_engine_that_is_gone_is_said(served: Served, tmp_path: Path) -> None:
    anchor, kept = tmp_path / "anchor", tmp_path / "kept"
    command = [
        sys.executable,
        "-c",
        f"import os; open({str(kept)!r}, 'a').write(os.environ['PULSE_ANCHOR'] + '\\n')",
    ]
    served.configure(f'[anchor]\nfile = "{anchor}"\ncommand = {command}\nevery = "1s"\n')

    async def promote() -> None:
        opened = SqliteEventLog.open(
            served.home.events, clock=SystemClock(), objects=FileObjects(served.home.objects)
        )
        async with opened as log:
            await log.append(Draft(EnginePromoted(previous="", watch_us=1), subject="abcdef"))

    asyncio.run(promote())
    served.start()
    served.eventually(lambda: (served.status()["engine"] or {}).get("gone"), "that the engine is gone")
    engine = served.status()["engine"]
    assert engine["degraded"]
    assert "engine/.git is gone" in engine["gone"]
    assert "engine-missing" in {one["name"] for one in served.status()["conditions"]}
    for place in (anchor, kept):
        served.eventually(partial(written, place), "the anchor")
        first = next(read_anchors(place.read_text().splitlines()))
        assert first.path == str(served.home.path)
    shown = [sys.executable, "-m", "upulse_cli", "status", "--home", str(served.home.path)]
    assert "DEGRADED" in subprocess.run(shown, capture_output=True, text=True, timeout=60, check=False).stdout
    assert served.stop() == 0
    verify = [sys.executable, "-m", "upulse_cli", "verify", "--no-engine", "--home", str(served.home.path)]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_an_anchor_that_is_written_at_last_is_no_damage_any_more(served: Served, tmp_path: Path) -> None:
    anchor = tmp_path / "not-mounted" / "anchor"
    served.configure(f'[anchor]\nfile = "{anchor}"\nevery = "1s"\n')
    served.reads_log = True
    served.start()

    def damage() -> list[str]:
        return [one["evidence"] for one in served.status()["conditions"] if one["name"] == "log-damaged"]

    served.eventually(damage, "that nobody vouches for the log")
    assert "nobody there vouches" in damage()[0]
    anchor.parent.mkdir()
    served.append("paused", why="so that the log grows")
    served.eventually(lambda: not damage(), "that the anchor vouches for it")
