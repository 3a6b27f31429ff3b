"""Vitals in a restore: kept where they can be read, else taken from the backup."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.sqlite.connect import connect_readonly


def is_usable(vitals: Path) -> bool:
    """Whether there are vitals that can be read as a whole."""
    if not vitals.exists():
        return False
    try:
        with closing(connect_readonly(vitals)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False


def mark(vitals: Path) -> None:
    """The next samples get ids that none had before: an id in the log must not come to mean another sample."""
    now = SystemClock().now()
    with closing(sqlite3.connect(vitals)) as connection:
        connection.execute("INSERT INTO sample VALUES (?, 'restored', ?, ?, ?, '{}')", (now.at, *now))
        connection.commit()
