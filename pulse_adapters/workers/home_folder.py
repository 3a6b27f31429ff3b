"""The folder of a home as its holder has opened it: it may be moved meanwhile, and another home may take its place."""

import errno
import os
from contextlib import suppress
from pathlib import Path


class HomeFolder:
    """Knows where the home lies. Every method but `close` and `fileno` blocks: for threads, where a disk may hang."""

    def __init__(self, home: Path) -> None:
        """Raises OSError."""
        self._home = home
        self._file = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._file

    def is_in_place(self) -> bool:
        """Whether it lies where it was opened; else what lies there is not this home's. Raises OSError."""
        return self._is_at(self._home)

    def was_moved(self) -> bool:
        """Whether it lies elsewhere now, or under a mount; one that was deleted does not. Raises OSError."""
        return not self.is_in_place() and os.fstat(self._file).st_nlink > 0

    def place(self) -> Path:
        """Where it lies now; one that was deleted is made anew where it lay. Raises OSError if it can't be reached."""
        if not self.was_moved():
            return self._home
        if self._is_at(place := Path(os.readlink(f"/proc/self/fd/{self._file}"))):
            return place
        raise OSError(errno.ENOENT, f"something else lies over {self._home}: unmount it, or move it away")

    def current(self, path: Path) -> Path:
        """Where a file of the home lies now; one elsewhere is where it is. Raises OSError."""
        return self.place() / path.relative_to(self._home) if path.is_relative_to(self._home) else path

    def _is_at(self, place: Path) -> bool:
        with suppress(FileNotFoundError, NotADirectoryError):
            return os.path.samestat(os.fstat(self._file), os.stat(place))
        return False

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)
