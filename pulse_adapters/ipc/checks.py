"""What the doctor asks of the home's lock and socket."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pulse_adapters.ipc.lock import is_held
from pulse_adapters.workers.read_only import is_failing
from pulse_core.app.doctor import FAIL, OK, WARN, Finding
from pulse_core.home import HomeLayout


@dataclass(frozen=True)
class LockChecks:
    """Checks of what lies in run/. is_held: whether somebody holds the home; lock: holds it for the caller."""

    home: HomeLayout
    is_held: Callable[[], bool]
    lock: Callable[[], AbstractContextManager[object]]

    def locks(self) -> Iterator[Finding]:
        """Whether the file system of the home has the locks on which one writer at a time depends."""
        path = self.home.lock if self.home.lock.exists() else self.home.config
        try:
            with path.open("rb") as file:
                is_held(file.fileno())
            yield Finding("locks", OK, "open-file-description locks work in the home")
        except OSError as error:
            words = f"{path} can't be locked: {error.strerror}"
            fails = is_failing(self.home.path)
            remedy = "look at the disk, which fails (dmesg)" if fails else "move the home to a local disk"
            yield Finding("locks", FAIL, words, remedy)

    def leftovers(self) -> Iterator[Finding]:
        """What a killed daemon has left."""
        if self.is_held():
            return
        stale = [path for path in (self.home.socket, self.home.pid) if os.path.lexists(path)]
        if not stale:
            return

        def remove() -> str:
            with self.lock():  # so nobody uses them
                for path in stale:
                    path.unlink(missing_ok=True)
            return f"removed {', '.join(path.name for path in stale)}"

        names = " and ".join(path.name for path in stale)
        words = f"{names} in {self.home.run} are left of a daemon that was killed"
        yield Finding(
            "leftovers", WARN, words, "the next start replaces them, or upulse doctor --repair", remove
        )
