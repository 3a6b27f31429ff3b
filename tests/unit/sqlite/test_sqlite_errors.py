"""What a disk does to an append is one kind of error, and none of its whims ends a start."""

import sqlite3
from pathlib import Path

import pytest

from pulse_adapters.sqlite.errors import unavailable
from pulse_adapters.sqlite.reserve import Reserve
from pulse_core.model.errors import LogUnavailable


@pytest.mark.parametrize("code", ["CORRUPT", "NOTADB", "FULL", "READONLY", "IOERR", "CANTOPEN"])
def test_an_append_is_refused_in_one_way_so_that_survival_goes_on_from_memory(code: str) -> None:
    error = sqlite3.DatabaseError("it says no")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    refused = unavailable(error, Path("/home/events.db"))
    assert isinstance(refused, LogUnavailable)
    assert "it says no" in str(refused)


def test_a_reserve_that_can_be_neither_made_nor_freed_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    for path in (tmp_path / "none" / "reserve", tmp_path / "plain" / "reserve"):
        reserve = Reserve(path)
        assert not reserve.make()
        assert not reserve.free()
