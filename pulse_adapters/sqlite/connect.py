"""Connections that cannot write: `mode=ro` neither changes nor checkpoints, and works beside a writer."""

import sqlite3
from pathlib import Path
from urllib.parse import quote


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A read-only connection; the file must exist."""
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None
    )
    connection.execute("PRAGMA cache_size = -512")  # scans gain nothing from a cache, idle memory does
    return connection
