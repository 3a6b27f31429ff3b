"""events.db is gone, and its -wal is not: no command makes a new log over it, and each says what would work."""

import asyncio
import shutil
from pathlib import Path

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused
from tests.integration.cli.cli_home import CliHome

COMMANDS = (
    "init", "status", "events", "why", "explain", "incidents", "verify", "pause", "resume", "process list",
    "process stop demo", "effect list", "effect add run-command --key k", "silence list", "silence add x --for 1h",
    "backup copy", "gc", "gc --dry-run", "daemon start", "redact 1 --why x",
)  # fmt: skip


@pytest.fixture
def orphaned(quiet: CliHome) -> CliHome:
    """A home without a daemon whose -wal alone has the rows."""
    wal, kept = quiet.path / "events.db-wal", quiet.path / "kept"

    async def write() -> None:
        objects = FileObjects(quiet.path / "objects")
        async with SqliteEventLog.open(quiet.path / "events.db", clock=SystemClock(), objects=objects) as log:
            await log.append(*(Draft(Paused(why="x" * 100)) for _ in range(262)))
            shutil.copy(wal, kept)

    asyncio.run(write())
    (quiet.path / "events.db").unlink()
    kept.rename(wal)
    return quiet


def test_no_command_makes_a_new_log_over_a_wal(
    orphaned: CliHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wal = orphaned.path / "events.db-wal"
    before = wal.read_bytes()
    silent = []
    for command in COMMANDS:
        said = orphaned.upulse(*command.split(), code=None)
        if said.code != 1 or "acknowledged rows" not in said.out + said.err:
            silent.append(f"{command}: {said}")
        assert wal.read_bytes() == before, command
        assert not (orphaned.path / "events.db").exists(), command
    assert not silent, "\n".join(silent)
    assert "acknowledged rows" in orphaned.upulse("doctor", code=1).out
    assert "with 262 rows" in orphaned.upulse("doctor", "--repair").err
    assert "262 rows" in orphaned.upulse("verify").out
