"""What comes of a backup of a home, and of a restore from one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Progress = Callable[[str], None]
"""Is told what is being done."""


class Backup(NamedTuple):
    """A backup that was made: where it is, when (UTC microseconds), up to which row, and what is in it.

    chain: the last row's chain value in hex; accepted: the damage in the log that a person had accepted;
    left_out: folders that are deeper, or have longer paths, than a backup can hold, and snapshots of ticks that were
    altered; engine_fault: why the engine in it is of no use, empty if it is whole.
    """

    path: str
    made_at: int
    seq: int
    chain: str
    host: str
    files: int
    bytes: int
    accepted: str
    left_out: Sequence[str] = ()
    engine_fault: str = ""


class Restored(NamedTuple):
    """What came of a restore.

    made_at: of the backup, UTC microseconds; rows: of the backup; salvaged: rows after them that were still sound; lost:
    rows that are known to have been there; fault: why not all could be kept; kept_at: where what was there is kept;
    notes: what else is to be said; engine_fault: why the engine that is there now is of no use, empty if it is whole.
    """

    source: str
    made_at: int
    rows: int
    salvaged: int
    lost: int
    fault: str
    kept_at: str
    notes: Sequence[str] = ()
    engine_fault: str = ""
