"""Copies of databases that somebody else is writing, whether such a copy is sound, and the rows that follow it."""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pulse_adapters.sqlite.chain import ALL_COLUMNS, START, link, seal
from pulse_adapters.sqlite.connect import connect_readonly, head_of, host_of, refuse_damage
from pulse_adapters.sqlite.errors import translate_error
from pulse_adapters.sqlite.migrate import format_of, steps
from pulse_adapters.sqlite.redactions import EMPTY_ALL, Redactions
from pulse_adapters.sqlite.verify import LogWalk, verify
from pulse_core.model.errors import Damaged, NewerFormat, PulseError

PAGES = 1_000
_INSERT = f"INSERT INTO event ({ALL_COLUMNS}) VALUES ({','.join('?' * 13)})"


class Examined(NamedTuple):
    """A sound log: its last row and chain value, the home's id, its format, and the damage that was accepted."""

    seq: int
    chain: bytes
    host: str
    format: int
    accepted: str


def copy_database(source: Path, target: Path) -> None:
    """A copy of `source` as it is at this moment, in one file; the source is neither written nor checkpointed.

    Its writer goes on meanwhile; only the -wal is not begun anew until this ends. target: an empty file. SQLite looks its
    path up again: raises PulseError if it came to another file, as when somebody moved the folder.
    """
    written = f"file:{quote(str(target))}?mode=rw"
    with closing(connect_readonly(source)) as reader, closing(sqlite3.connect(written, uri=True)) as copy:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on nothing new is seen
        copy.execute("PRAGMA synchronous = OFF")  # whoever wants the copy syncs it as a whole
        copy.execute("PRAGMA journal_mode = OFF")  # which would be one more file, by its path
        if not _has_open(target):
            raise PulseError(f"somebody moved the folder of {target.name} away while it was copied")
        reader.backup(copy, pages=PAGES)
    with target.open("r+b") as file:
        # The format of a database without a -wal: it is one file, also when somebody reads it.
        file.seek(18)
        file.write(b"\x01\x01")


def _has_open(path: Path) -> bool:
    """Whether this process has the file open."""
    wanted = path.stat()
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.path.samestat(wanted, os.fstat(int(handle))):
                return True
    return False


def copy_under_wal(backup: Path, target: Path) -> None:
    """A copy of a log's backup that SQLite reads with the -wal of that log, as a stand-in for the lost database.

    A backup has the pages of the database by their numbers. Those that changed since are in the -wal, or are lost, and
    then the rows on them break the chain: what is read must be checked.
    """
    shutil.copyfile(backup, target)
    with target.open("r+b") as file:
        file.seek(18)
        file.write(b"\x02\x02")  # the format of a database in WAL mode


def examine(path: Path, objects: Path, expect: tuple[int, bytes] | None = None) -> Examined:
    """Read a whole log with the objects that it names; raises Damaged for what nobody has accepted, NewerFormat.

    expect: a row that is known to have been there, and its chain value.
    """
    verdict = verify(path, objects, expect=expect)
    refuse_damage(path)
    try:
        with closing(connect_readonly(path)) as connection:
            if (version := format_of(connection)) > len(steps()):
                raise NewerFormat(
                    f"{path} has format {version}, this Pulse knows formats up to {len(steps())}; use the newer Pulse"
                )
            if verdict.fault and (fault := _not_accepted(connection, objects, verdict.rows)):
                raise Damaged(f"{path}: {verdict.fault}" + (f"; {fault}" if fault != verdict.fault else ""))
            seq, chain = head_of(connection)
            return Examined(seq, chain, host_of(connection), version, verdict.fault)
    except sqlite3.Error as error:
        raise translate_error(error, path) from error


def _not_accepted(connection: sqlite3.Connection, objects: Path, good: int) -> str:
    """What is wrong from the row on at which a person last accepted damage; all, if that was not behind `good`."""
    accepted = connection.execute("SELECT max(seq) FROM event WHERE +kind = 'damage-accepted'").fetchone()[0]
    if not accepted or accepted <= good:
        return "nobody has accepted that"
    before = connection.execute("SELECT chain FROM event WHERE seq = ?", (accepted - 1,)).fetchone()
    return LogWalk(connection, objects, (accepted - 1, before[0] if before else START)).to_end()


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
    found = PresentLog()
    try:
        if path.exists():
            with closing(connect_readonly(path)) as connection:
                found = PresentLog(host=host_of(connection))
                return found._replace(seq=head_of(connection)[0])
    except sqlite3.Error as error:
        return found._replace(fault=f"it can't be read ({error})")
    return found


def salvage(present: Path, target: Path, objects: Path) -> Salvaged:
    """Append to the log in `target` what follows its last row in `present`. Nobody else has either of them open."""
    try:
        source = connect_readonly(present)
    except sqlite3.DatabaseError as error:
        return Salvaged(fault=f"it can't be read ({error})")
    with closing(sqlite3.connect(target)) as writer, closing(source) as reader:
        tail, rows = LogWalk(reader, objects, head_of(writer)), 0
        for batch in tail:
            writer.executemany(_INSERT, batch)
            rows += len(batch)
        if tail.fault:
            rows += _carry_redactions(reader, writer)
        writer.commit()
    return Salvaged(rows, tail.fault)


def _carry_redactions(reader: sqlite3.Connection, writer: sqlite3.Connection) -> int:
    """Append what redacts rows that were carried over, and lies behind the damage: else these were damage, too.

    How many rows that is.
    """
    said, known, rows = Redactions(reader), Redactions(writer), 0
    for bare in writer.execute(f"SELECT {ALL_COLUMNS} FROM event WHERE data IS NULL ORDER BY seq").fetchall():
        if not known(bare):
            found = reader.execute(f"SELECT {ALL_COLUMNS} FROM event WHERE seq = ?", (said.said_in(bare),))
            _, *row, data, digest, _ = found.fetchone()
            seq, chain = head_of(writer)
            chain = link(chain, seq + 1, seal(tuple(row), digest))
            writer.execute(_INSERT, (seq + 1, *row, data, digest, chain))
            rows += 1
    return rows


def empty_redacted(path: Path) -> None:
    """Empty what the backup still had and a later row says is redacted. Nobody else has the log open."""
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA secure_delete = ON")
        writer.execute(EMPTY_ALL)
        writer.commit()
