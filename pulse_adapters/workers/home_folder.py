"""The folder of a home as a daemon has opened it: it may be moved under the daemon, and another home may take its place."""

import os
from contextlib import suppress
from pathlib import Path


class HomeFolder:
    """Knows where the files of the home lie. Every method but `close` blocks: for threads, where a disk may hang."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def is_in_place(self) -> bool:
        """Whether it lies where it was opened; else what lies there is not this home's. Raises OSError."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return os.path.samestat(os.fstat(self._file), os.stat(self._home))
        return False

    def current(self, path: Path) -> Path:
        """Where a file of the home lies now; one elsewhere is where it is. Raises OSError."""
        if not path.is_relative_to(self._home) or self.is_in_place():
            return path
        return Path(os.readlink(f"/proc/self/fd/{self._file}")) / path.relative_to(self._home)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)
