"""events.db is gone, and its -wal is not: no command makes a new log over it, and each says what would work."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.event import Checkpoint, Draft, Head
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


@pytest.mark.parametrize("witness", ["note", "note of another boot or file", "state", "backup"])
def test_readers_say_that_the_log_is_shorter_than_somebody_knows(quiet: CliHome, witness: str) -> None:
    events, note = quiet.path / "events.db", quiet.path / "events.db-boot"
    quiet.upulse("pause")  # what the daemon had moved out of its -wal when it was killed
    known = Head()

    async def write() -> bytes:
        nonlocal known
        objects = FileObjects(quiet.path / "objects")
        async with SqliteEventLog.open(events, clock=SystemClock(), objects=objects) as log:
            await log.append(*(Draft(Paused()) for _ in range(3)))
            known = log.head
            if witness == "state":
                saved = {"x": Checkpoint(1, known, "{}")}
                await SqliteCheckpoints(quiet.path / "state.db", log.host).save(saved)
            return events.read_bytes()

    killed = asyncio.run(write())
    if witness == "backup":
        quiet.upulse("backup", str(quiet.path.parent / "backup"))
    os.truncate(events, 0)  # the same file, as it is where the -wal of a killed daemon is deleted
    with events.open("r+b") as file:
        file.write(killed)
    if witness == "note of another boot or file":
        note.write_text(note.read_text().replace(note.read_text()[:36], "0" * 36))
    elif witness != "note":
        note.unlink()
    words = f"knows row {known.seq}, {events} ends at row {known.seq - 3}: rows are LOST, and not shown"
    for command in ("events", "status", "why", "why pulse", "process list", "incidents", "effect list"):
        said = quiet.upulse(*command.split(), code=None).err
        assert said.count(words) == 1, (command, said)
