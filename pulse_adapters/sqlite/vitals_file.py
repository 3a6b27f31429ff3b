"""Opens vitals.db for writing; what cannot be used is set aside, since vitals are worth less than the start."""

import sqlite3
from pathlib import Path

_SCHEMA = Path(__file__).parent / "schema" / "vitals.sql"
_FORMAT = 1
SAMPLE_COLUMNS = "id, key, at, boot, mono, data"
TICK_COLUMNS = (
    "tick, at, boot, mono, woken_by, seq, chain, samples, settings, version, layers, effects,"
    " tick_ms, took_us, snapshot, engine"
)
OLDER_TICK_COLUMNS = TICK_COLUMNS.replace(", engine", ", NULL")
KNOWS_ENGINES = "SELECT 1 FROM pragma_table_info('tick') WHERE name = 'engine'"
"""Files of before do not say which commit was asked, and are the same but for that."""


def open_vitals(path: Path) -> tuple[sqlite3.Connection, int]:
    """The connection and the last sample's id. Only a disk that takes no file at all is an error here."""
    try:
        return _open(path)
    except sqlite3.Error:
        for part in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if part.exists():
                part.replace(part.with_name(part.name.replace(path.name, f"{path.name}.unusable")))
    try:
        return _open(path)
    except sqlite3.Error:
        return _open(Path(":memory:"))  # the disk takes nothing now; the next start tries again


def _open(path: Path) -> tuple[sqlite3.Connection, int]:
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=16)
    try:
        connection.execute(
            "PRAGMA auto_vacuum = INCREMENTAL"
        )  # of a new file alone, before anything is in it
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -512")
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _FORMAT):
            raise sqlite3.DatabaseError("vitals of another format")
        connection.executescript(f"{_SCHEMA.read_text()}\nPRAGMA user_version = {_FORMAT};")
        if not connection.execute(KNOWS_ENGINES).fetchone():
            connection.execute("ALTER TABLE tick ADD COLUMN engine TEXT")
        connection.execute("SELECT max(tick) FROM tick").fetchone()
        last = connection.execute("SELECT coalesce(max(id), 0) FROM sample").fetchone()[0]
    except BaseException:
        connection.close()
        raise
    return connection, int(last)
