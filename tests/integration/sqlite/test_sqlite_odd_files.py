"""A pipe in the place of a database, its -wal or its -shm is told, and hangs nobody."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints, read_checkpoints
from pulse_adapters.sqlite.connect import connect_readonly, refuse_damage
from pulse_adapters.sqlite.opening import Opening, open_writer
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.model.errors import Damaged
from pulse_core.model.event import Checkpoint, Head

PARTS = ("", "-wal", "-shm")


def with_pipe(path: Path, part: str) -> Path:
    """A database of which one part is a pipe."""
    if part:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE any (one)")
    os.mkfifo(f"{path}{part}")
    return path


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", PARTS)
def test_who_reads_or_opens_the_log_is_told(tmp_path: Path, part: str) -> None:
    path = with_pipe(tmp_path / "events.db", part)
    with pytest.raises(sqlite3.DatabaseError, match=f"{path}{part} is no regular file; move it away"):
        connect_readonly(path)
    with pytest.raises(Damaged, match="is no regular file"):
        refuse_damage(path)
    with pytest.raises(Damaged, match="is no regular file"):
        open_writer(path, Opening())


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", PARTS)
async def test_vitals_and_checkpoints_are_begun_anew(tmp_path: Path, part: str) -> None:
    path = with_pipe(tmp_path / "vitals.db", part)
    async with SqliteVitals.open(path) as vitals:
        assert "is no regular file; move it away): it was set aside" in vitals.set_aside
    assert path.is_file()
    os.mkfifo(tmp_path / "state.db")
    checkpoint = Checkpoint(1, Head(), "{}")
    assert read_checkpoints(tmp_path / "state.db") == {}
    await SqliteCheckpoints(tmp_path / "state.db").save({"effects": checkpoint})
    assert read_checkpoints(tmp_path / "state.db") == {"effects": checkpoint}
