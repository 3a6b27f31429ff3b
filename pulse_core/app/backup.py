"""Backups of a home: what one is, and in which order a home is put back from one."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

Progress = Callable[[str], None]
"""Is told what is being done."""


class Backup(NamedTuple):
    """A backup that was made: where it is, when (UTC microseconds), up to which row, and what is in it.

    chain: the last row's chain value in hex; accepted: the damage in the log that a person had accepted.
    """

    path: str
    made_at: int
    seq: int
    chain: str
    host: str
    files: int
    bytes: int
    accepted: str


class Restored(NamedTuple):
    """What came of a restore.

    rows: of the backup; salvaged: rows after them that were still sound; lost: rows that are known to have been there;
    fault: why not all could be kept; kept_at: where what was there is kept; notes: what else is to be said.
    """

    source: str
    made_at: int
    rows: int
    salvaged: int
    lost: int
    fault: str
    kept_at: str
    notes: Sequence[str] = ()


class Restore(Protocol):
    """A restore from a backup that was found sound. Nothing has changed in the home yet."""

    def prepared(self, keep_tail: bool) -> AbstractContextManager[Restored]:
        """Put everything in place beside the stores; what will come of it.

        Whatever fails inside of the `with` leaves the home as it was, and is raised as PulseError.
        """
        ...

    def decide(self, restored: Restored) -> None:
        """From here on the restore can only be finished. Inside of `prepared`, at its end."""
        ...


class Backups(Protocol):
    """The backups of one home. A home may be in use while it is copied: it is only read."""

    def make(self, destination: str, progress: Progress) -> Backup:
        """Copy the home to a new directory; raises PulseError, and then leaves nothing."""
        ...

    def check(self, source: str, progress: Progress) -> Restore:
        """Read everything in a backup; raises Damaged or NewerFormat if it must not be put back."""
        ...

    def exclusive(self) -> AbstractContextManager[object]:
        """The home for the caller alone, made if there is none; raises HomeBusy while somebody else has it."""
        ...

    def finish(self) -> Restored | None:
        """Carry out a restore that was decided, from wherever it was broken off; None if there is none.

        Inside of `exclusive`. Raises PulseError if it can't be done now.
        """
        ...


def back_up(backups: Backups, destination: str, progress: Progress) -> Backup:
    """Copy the home to a new directory. Raises PulseError, and then leaves nothing."""
    return backups.make(destination, progress)


def restore(
    backups: Backups, source: str, keep_tail: bool, end_shadow: Callable[[], str], progress: Progress
) -> tuple[Restored, Restored | None]:
    """Put the home back; what came of it, and of an earlier restore that had to be finished first.

    A restore has one moment of decision. Before it, everything is prepared beside the stores and any failure leaves
    the home as it was; after it, each step can be repeated from wherever it was broken off, and reader and writer
    refuse the log until the last one is done. end_shadow: a shadow would go on reading the log that is set aside; it is
    ended before the decision, and what is returned is said. Raises PulseError; HomeBusy if the daemon runs.
    """
    found = backups.check(source, progress)
    with backups.exclusive():
        earlier = backups.finish()
        with found.prepared(keep_tail) as prepared:
            note = end_shadow()
            restored = prepared._replace(notes=(*prepared.notes, note)) if note else prepared
            found.decide(restored)
        backups.finish()
    return restored, earlier
