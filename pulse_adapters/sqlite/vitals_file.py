"""Opens vitals.db for writing, and turns samples and tick records into its rows and back.

What cannot be used is set aside, since vitals are worth less than the start.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pulse_adapters.sqlite.connect import connect_readonly, lost_frames, make_private, refuse_odd_files
from pulse_adapters.sqlite.errors import is_disk_full
from pulse_adapters.sqlite.shared_memory import MendingConnection, SharedMemory, refuse_full
from pulse_adapters.workers.database_files import files_of, names_beside
from pulse_adapters.workers.read_only import why_no_new_file
from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import Sample

LOG = logging.getLogger("pulse.daemon")
T = TypeVar("T")
_SCHEMA = Path(__file__).parent / "schema" / "vitals.sql"
_FORMAT = 1
MEMORY = Path(":memory:")
"""What SQLite keeps in memory instead of a file."""

SAMPLE_COLUMNS = "id, key, at, boot, mono, data"
TICK_COLUMNS = (
    "tick, at, boot, mono, woken_by, seq, chain, samples, settings, version, layers, effects,"
    " tick_ms, took_us, snapshot, engine"
)
OLDER_TICK_COLUMNS = TICK_COLUMNS.replace(", engine", ", NULL")
KNOWS_ENGINES = "SELECT 1 FROM pragma_table_info('tick') WHERE name = 'engine'"
"""Files of before do not say which commit was asked, and are the same but for that."""


class VitalsConnection(MendingConnection):
    """A connection to a file. opened: that and its -wal as they were opened, by their names; nothing if kept in memory.

    lost: what of it was lost before, in words.
    """

    lost: str = ""
    opened: Mapping[Path, os.stat_result] = MappingProxyType({})


def loss(connection: sqlite3.Connection) -> str:
    """Why what is written to it is lost, in words: its files are not there any more; empty if they are."""
    for path, opened in connection.opened.items() if isinstance(connection, VitalsConnection) else ():
        try:
            if os.path.samestat(os.lstat(path), opened):
                continue
            now = "was replaced"
        except OSError as error:
            now = f"is gone ({error.strerror})"
        return (
            f"{path} {now} while it was written: samples are lost at the end of this daemon; "
            "`upulse daemon restart` begins with the files that are there then"
        )
    return ""


def open_vitals(path: Path) -> tuple[sqlite3.Connection, tuple[int, str]]:
    """The connection, the last sample's id, and why an older file was set aside or is not written, or what of it is lost, in
    words.

    Where nothing can be written, they are kept in memory, for as long as this daemon lives.
    """
    try:
        connection, last = _open(path)
        return connection, (last, connection.lost)
    except (sqlite3.Error, OSError) as error:
        why = why_no_new_file(files_of(path).database.parent)
        is_full = isinstance(error, sqlite3.Error) and is_disk_full(error)
        if why or (is_full and _can_be_read(path)):  # then nothing is wrong with what is there
            return _in_memory(path, why or str(error))
        fault = str(error)
    try:
        words = _set_aside(path, fault)
        connection, last = _open(path)
    except (sqlite3.Error, OSError) as error:
        again = "" if str(error) == fault else f"; {error}"
        return _in_memory(path, f"{fault}{again}")  # the next start tries again
    return connection, (last, words)


def _set_aside(path: Path, fault: str) -> str:
    """Give what is there other names; what was done, in words. Raises OSError if that can't be done."""
    there = list(filter(os.path.lexists, names_beside(path)))
    for part in there:
        os.replace(part, part.with_name(part.name.replace(path.name, f"{path.name}.unusable")))
    if not there:
        return ""
    words = (
        f"{path} can't be used ({fault}): it was set aside as {path.name}.unusable, and new vitals are begun"
    )
    LOG.warning("%s", words)
    return words


def _can_be_read(path: Path) -> bool:
    with suppress(sqlite3.Error), closing(connect_readonly(path)) as connection:
        connection.execute("SELECT max(tick) FROM tick").fetchone()
        return True
    return False


def _in_memory(path: Path, why: str) -> tuple[sqlite3.Connection, tuple[int, str]]:
    connection, last = _open(MEMORY)
    return connection, (last, f"{path} can't be written: {why}; samples are kept in memory")


def _open(path: Path) -> tuple[VitalsConnection, int]:
    if path != MEMORY:
        refuse_full(path)
        make_private(path)
    refuse_odd_files(path)
    lost = lost_frames(path)
    connection = VitalsConnection(path, isolation_level=None, cached_statements=16)
    try:
        connection.lost = lost
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file, before anything is in it
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if lost:  # the next start shall not find these frames again
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA cache_size = -512")
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _FORMAT):
            raise sqlite3.DatabaseError("vitals of another format")
        connection.executescript(f"{_SCHEMA.read_text()}\nPRAGMA user_version = {_FORMAT};")
        if not connection.execute(KNOWS_ENGINES).fetchone():
            connection.execute("ALTER TABLE tick ADD COLUMN engine TEXT")
        connection.execute("SELECT max(tick) FROM tick").fetchone()
        last = connection.execute("SELECT coalesce(max(id), 0) FROM sample").fetchone()[0]
        if path != MEMORY:
            connection.shm, connection.is_writer = SharedMemory(path), True
            names = filter(os.path.lexists, (path, files_of(path).wal))
            connection.opened = {name: os.lstat(name) for name in names}
    except BaseException:
        connection.close()
        raise
    return connection, int(last)


def readable(make: Callable[[tuple[Any, ...]], T], rows: Iterable[tuple[Any, ...]]) -> Iterator[T]:
    """What is made of each row; one that was altered on the disk, of which nothing can be made, is left out."""
    for row in rows:
        try:
            made = make(row)
        except (ValueError, TypeError):
            continue
        yield made


def sample_row(sample: Sample) -> tuple[Any, ...]:
    """The sample in the order of SAMPLE_COLUMNS."""
    return (sample.id, sample.key, *sample.moment, json.dumps(dict(sample.data), default=repr))


def sample_of(row: tuple[Any, ...]) -> Sample:
    """The sample that such a row holds."""
    return Sample(row[0], row[1], Moment(*row[2:5]), json.loads(row[5]))


def tick_row(tick: TickRecord) -> tuple[Any, ...]:
    """The record in the order of TICK_COLUMNS."""
    layers = [(layer.rule, layer.outcome, layer.notes, layer.took_us) for layer in tick.layers]
    return (
        tick.tick,
        *tick.moment,
        tick.woken_by,
        tick.head.seq,
        tick.head.chain.hex(),
        json.dumps(tick.samples),
        tick.settings,
        tick.version,
        json.dumps(layers),
        json.dumps(tick.effects),
        tick.tick_ms,
        tick.took_us,
        tick.snapshot,
        tick.engine,
    )


def tick_of(row: tuple[Any, ...]) -> TickRecord:
    """The record that such a row holds."""
    return TickRecord(
        tick=row[0],
        moment=Moment(*row[1:4]),
        woken_by=row[4],
        head=Head(row[5], bytes.fromhex(row[6])),
        samples=tuple(json.loads(row[7])),
        settings=row[8],
        version=row[9],
        layers=layers_of(row[10]),
        effects=tuple(json.loads(row[11])),
        tick_ms=row[12],
        took_us=row[13],
        snapshot=row[14],
        engine=row[15],
    )


def layers_of(text: str) -> tuple[LayerOutcome, ...]:
    """What each rule did, out of a row's JSON."""
    return tuple(LayerOutcome(rule, said, tuple(notes), us) for rule, said, notes, us in json.loads(text))
