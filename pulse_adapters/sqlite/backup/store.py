"""The backups of a home on this machine."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.sqlite.backup.create import make_backup
from pulse_adapters.sqlite.backup.restore import HomeRestore, finish_decided
from pulse_core.app.backup import Backup, Progress, Restored
from pulse_core.home import HomeLayout
from pulse_core.ports import Clock, Objects


@dataclass(frozen=True)
class HomeBackups:
    """Implements `Backups`. lock: makes the home if there is none, and holds it for the caller alone."""

    home: HomeLayout
    clock: Clock
    objects: Objects
    lock: Callable[[], AbstractContextManager[object]]

    def make(self, destination: str, progress: Progress) -> Backup:
        """Copy the home, read the copy back, and only then give it its name."""
        return make_backup(self.home, destination, progress)

    def check(self, source: str, progress: Progress) -> HomeRestore:
        """Read everything in the backup, its log row by row."""
        backup = Path(os.path.realpath(os.path.expanduser(source)))
        return HomeRestore(self.home, backup, self.clock, self.objects, progress)

    def exclusive(self) -> AbstractContextManager[object]:
        """The home's lock."""
        return self.lock()

    def finish(self) -> Restored | None:
        """Finish a restore that was decided."""
        return finish_decided(self.home)
