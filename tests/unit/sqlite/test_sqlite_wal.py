"""The scan of a write-ahead log, on logs that SQLite itself wrote."""

import sqlite3
from pathlib import Path

import pytest

from pulse_adapters.sqlite.wal import FRAME, HEADER, examine, last_rowid
from pulse_core.model.errors import Damaged

PAGE = 4096


@pytest.fixture
def wal(tmp_path: Path) -> bytes:
    """Three transactions of several frames each."""
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    for _ in range(2):
        connection.execute("INSERT INTO t VALUES (randomblob(20000))")
    content = (tmp_path / "x.db-wal").read_bytes()
    connection.close()
    return content


def start(frame: int) -> int:
    return HEADER + (frame - 1) * (FRAME + PAGE)


def commits(wal: bytes) -> list[int]:
    count = (len(wal) - HEADER) // (FRAME + PAGE)
    return [frame for frame in range(1, count + 1) if any(wal[start(frame) + 4 : start(frame) + 8])]


def flipped(wal: bytes, place: int) -> bytes:
    return wal[:place] + bytes([wal[place] ^ 1]) + wal[place + 1 :]


PATH = Path("events.db")


def test_a_whole_log_is_good(wal: bytes) -> None:
    state = examine(wal, PATH)
    assert len(commits(wal)) >= 3
    assert (state.committed, state.torn) == (commits(wal)[-1], "")


def test_a_bad_frame_with_transactions_after_it_is_damage_and_is_named(wal: bytes) -> None:
    bad = commits(wal)[1]
    with pytest.raises(Damaged, match=rf"frame {bad} .*byte {start(bad)}.*--accept-damage"):
        examine(flipped(wal, start(bad) + 100), PATH)
    with pytest.raises(Damaged):
        examine(flipped(wal, start(bad) + 100), PATH, rebooted=True)


@pytest.mark.parametrize("place", [0, 4, 8, 12, 16, 24])
def test_every_field_of_a_frame_header_counts(wal: bytes, place: int) -> None:
    with pytest.raises(Damaged):
        examine(flipped(wal, start(2) + place + 3), PATH)


@pytest.mark.parametrize("place", [0, 5, 10, 14, 17, 25, 31])
def test_every_field_of_the_header_counts(wal: bytes, place: int) -> None:
    with pytest.raises(Damaged, match="header"):
        examine(flipped(wal, place), PATH)


def test_a_torn_tail_is_normal(wal: bytes) -> None:
    last, before = commits(wal)[-1], commits(wal)[-2]
    cut = wal[: start(last)]
    assert examine(cut, PATH).committed == before
    assert examine(wal[: start(last) + 500], PATH).committed == before
    assert examine(flipped(wal, start(last) + 500), PATH).committed == before


def test_a_hole_in_the_last_transaction_is_a_power_cuts_doing_only_after_a_reboot(wal: bytes) -> None:
    last, before = commits(wal)[-1], commits(wal)[-2]
    assert last - before > 2
    holed = flipped(wal, start(before + 1) + 500)
    with pytest.raises(Damaged):
        examine(holed, PATH)
    state = examine(holed, PATH, rebooted=True)
    assert state.committed == before
    assert "torn" in state.torn


def test_frames_of_an_older_salt_are_no_damage(wal: bytes) -> None:
    last = commits(wal)[-2]
    older = bytearray(wal)
    for frame in range(last + 1, commits(wal)[-1] + 1):
        older[start(frame) + 8 : start(frame) + 16] = b"\1" * 8
    assert examine(bytes(older), PATH).committed == last


def test_a_log_that_was_never_begun_is_empty() -> None:
    assert examine(bytes(5000), PATH).committed == 0


def test_big_endian_checksums_are_read_too() -> None:
    """A header by hand: the sums of its first 24 bytes as big-endian words."""
    words = [0x377F0683, 3007000, 4096, 0, 1, 2]
    one = two = 0
    for left, right in zip(words[::2], words[1::2], strict=True):
        one = (one + left + two) % 2**32
        two = (two + right + one) % 2**32
    content = b"".join(word.to_bytes(4, "big") for word in (*words, one, two))
    assert examine(content, PATH).committed == 0
    with pytest.raises(Damaged):
        examine(flipped(content, 23), PATH)


def test_the_largest_row_number_is_told_of_whatever_lies_there(wal: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows-wal"

    def last(content: bytes) -> int:
        path.write_bytes(content)
        return last_rowid(path)

    assert last(wal) == last(bytes(HEADER) + wal[HEADER:]) == last(flipped(wal, 9)) == 2
    assert [last(content) for content in (bytes(10 * PAGE), b"x" * 10, b"\r" * 10 * PAGE)] == [0, 0, 0]
