"""Carries the sound rows behind a backup's last one over from the log that was there, as far as its chain goes on."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.sqlite.backup.databases import head_of, host_of
from pulse_adapters.sqlite.chain import ALL_COLUMNS, first_fault
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.payloads import LostPayload, payload_in
from pulse_adapters.sqlite.references import is_reference

_BATCH = 1_000
_INSERT = f"INSERT INTO event ({ALL_COLUMNS}) VALUES ({','.join('?' * 13)})"


class PresentLog(NamedTuple):
    """What can be told of the log that is there: its last readable row, whose it is, and why it can't be read."""

    seq: int = 0
    host: str = ""
    fault: str = ""


class Salvaged(NamedTuple):
    """How many rows were carried over, and what is wrong with the next one; nothing if that was all."""

    rows: int = 0
    fault: str = ""


def read_present_log(path: Path) -> PresentLog:
    """As far as it can be read; whatever is wrong is put into words."""
    if not path.exists():
        return PresentLog()
    seq, host, fault = 0, "", ""
    try:
        with closing(connect_readonly(path)) as connection:
            host = host_of(connection)
            seq = head_of(connection)[0]
    except sqlite3.Error as error:
        fault = f"it can't be read ({error})"
    return PresentLog(seq, host, fault)


def salvage(
    present: Path, target: Path, objects: Path, told: Callable[[int], None] = lambda rows: None
) -> Salvaged:
    """Append to the log in `target` what follows its last row in `present`. Nobody else has either of them open."""
    with closing(sqlite3.connect(target)) as writer:
        tail, rows = Tail(present, head_of(writer), objects), 0
        for batch in tail:
            writer.executemany(_INSERT, batch)
            rows += len(batch)
            told(rows)
        writer.commit()
    return Salvaged(rows, tail.fault)


class Tail:
    """The sound rows after `head` in the log at `path`, in batches; then `fault` says what is wrong with the next."""

    def __init__(self, path: Path, head: tuple[int, bytes], objects: Path) -> None:
        self.fault = ""
        self._path, self._objects = path, objects
        self._seq, self._chain = head

    def __iter__(self) -> Iterator[list[Any]]:
        try:
            with closing(connect_readonly(self._path)) as reader:
                reader.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
                while not self.fault and (batch := _after(reader, self._seq)):
                    sound, self.fault = _sound(batch, self._seq, self._chain, self._objects)
                    if sound:
                        self._seq, self._chain = sound[-1][0], sound[-1][12]
                    yield sound
        except sqlite3.DatabaseError as error:
            self.fault = f"row {self._seq + 1} or one soon after it can't be read: {error}"


def _after(reader: sqlite3.Connection, seq: int) -> list[Any]:
    sql = f"SELECT {ALL_COLUMNS} FROM event WHERE seq > ? ORDER BY seq LIMIT {_BATCH}"
    return reader.execute(sql, (seq,)).fetchall()


def _sound(batch: list[Any], seq: int, chain: bytes, objects: Path) -> tuple[list[Any], str]:
    """The rows before the first bad one, and what is wrong with that."""
    good, fault = first_fault(batch, seq, chain)
    for place, row in enumerate(batch[:good]):
        if is_reference(row[10]):
            try:
                payload_in(objects, row[10])
            except LostPayload as lost:
                return batch[:place], f"the payload of row {row[0]} is lost: {lost}"
    return batch[:good], fault
