"""What a disk does to an append is one kind of error, and none of its whims ends a start."""

import errno
import sqlite3
from pathlib import Path

import pytest

from pulse_adapters.sqlite.errors import translate_error, unavailable
from pulse_adapters.sqlite.reserve import Reserve
from pulse_core.model.errors import Damaged, LogUnavailable


@pytest.mark.parametrize("code", ["CORRUPT", "NOTADB", "FULL", "READONLY", "IOERR", "CANTOPEN"])
def test_an_append_is_refused_in_one_way_so_that_survival_goes_on_from_memory(code: str) -> None:
    error = sqlite3.DatabaseError("it says no")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    refused = unavailable(error, Path("/home/events.db"))
    assert isinstance(refused, LogUnavailable)
    assert "it says no" in str(refused)


def test_a_disk_that_fails_is_no_damage_that_a_backup_should_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert isinstance(translate_error(error, tmp_path / "events.db"), Damaged)

    def fails(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("pulse_adapters.workers.read_only.os.open", fails)
    said = translate_error(error, tmp_path / "events.db")
    assert isinstance(said, LogUnavailable)
    assert "its disk fails" in str(said)
    assert "may be sound" in str(said)


@pytest.mark.parametrize("code", ["FULL", "IOERR", "READONLY", "CANTOPEN"])
def test_a_disk_that_became_read_only_is_called_neither_full_nor_failing(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ext4 does after an error of its own (`errors=remount-ro`); whoever frees space there gains nothing by it."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")

    def refuses(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pulse_adapters.workers.read_only.os.open", refuses)
    said = translate_error(error, tmp_path / "events.db")
    assert isinstance(said, LogUnavailable)
    assert str(said).endswith("nothing was recorded: its file system is read-only: make it writable")


def test_a_reserve_that_can_be_neither_made_nor_freed_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for path in (tmp_path / "none" / "reserve", tmp_path / "plain" / "reserve"):
        reserve = Reserve(path)
        assert not reserve.make()
        assert not reserve.free()
