"""Backups of a log that is a list of words, kept by the place that they were made at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pulse_core.app.backup import Backup, Progress, Restored
from pulse_core.model.errors import HomeBusy, PulseError


@dataclass
class MemoryBackups:
    """Implements `Backups`. rows: the log; busy: whether somebody else has the home."""

    rows: list[str] = field(default_factory=list)
    busy: bool = False
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)
    decided: tuple[Restored, list[str]] | None = None

    def make(self, destination: str, progress: Progress) -> Backup:
        if destination in self.kept:
            raise PulseError(f"{destination} holds a backup already")
        progress("copying …")
        self.kept[destination] = tuple(self.rows)
        return Backup(destination, 0, len(self.rows), "", "memory", 1, sum(map(len, self.rows)), "")

    def check(self, source: str, progress: Progress) -> "MemoryRestore":
        if source not in self.kept:
            raise PulseError(f"{source} is no backup")
        progress("checking the backup …")
        return MemoryRestore(self, source, list(self.kept[source]))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        if self.busy:
            raise HomeBusy("memory", None)
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    def finish(self) -> Restored | None:
        if self.decided is None:
            return None
        (restored, rows), self.decided = self.decided, None
        self.rows[:] = rows
        return restored


@dataclass
class MemoryRestore:
    """Implements `Restore`."""

    home: MemoryBackups
    source: str
    rows: list[str]
    tail: list[str] = field(default_factory=list)

    @contextmanager
    def prepared(self, keep_tail: bool) -> Iterator[Restored]:
        after = self.home.rows[len(self.rows) :]
        is_sound = self.home.rows[: len(self.rows)] == self.rows
        self.tail = after if keep_tail and is_sound else []
        lost = len(after) - len(self.tail)
        yield Restored(self.source, 0, len(self.rows), len(self.tail), lost, "", "aside")

    def decide(self, restored: Restored) -> None:
        self.home.decided = restored, [*self.rows, *self.tail]
