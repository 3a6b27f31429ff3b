"""Brings events.db to this version's format: forward only, each step whole or not at all, a copy kept first."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from pulse_adapters.sqlite.connect import make_private
from pulse_core.model.errors import Damaged, NewerFormat, OlderFormat

MIGRATIONS = Path(__file__).parent / "migrations"


def steps(directory: Path = MIGRATIONS) -> list[tuple[int, str]]:
    """The numbered migrations as (format they lead to, SQL), in order."""
    files = sorted(directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    found = [(int(re.match(r"\d+", file.name)[0]), file.read_text()) for file in files]  # type: ignore[index]
    if [number for number, _ in found] != list(range(1, len(found) + 1)):
        raise Damaged(f"the migrations in {directory} are not numbered 1 to {len(found)}; reinstall Pulse")
    return found


def migrate(
    connection: sqlite3.Connection, path: Path, directory: Path = MIGRATIONS, may_change: bool = True
) -> None:
    """Apply what is missing, to an old file only if it `may_change`; raises NewerFormat for a newer Pulse's file."""
    known = steps(directory)
    version = format_of(connection)
    if version > len(known):
        raise NewerFormat(
            f"{path} has format {version}, this Pulse knows formats up to {len(known)};"
            " install the newer Pulse again, or use another home"
        )
    if 0 < version < len(known) and not may_change:
        raise OlderFormat(
            f"{path} has the older format {version}; start the daemon, which brings it up to date"
        )
    if 0 < version < len(known):
        keep_copy(connection, path.with_name(f"{path.name}.before-{len(known)}"))
    for number, sql in known[version:]:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def format_of(connection: sqlite3.Connection) -> int:
    """The format that the file says it has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def keep_copy(connection: sqlite3.Connection, copy: Path) -> None:
    """A whole copy of the database in one file, in place only once it is complete."""
    unfinished = copy.with_name(f"{copy.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    make_private(unfinished)
    with closing(sqlite3.connect(unfinished)) as target:
        connection.backup(target)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(copy)
