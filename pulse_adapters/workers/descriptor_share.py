"""Survival has its own share of this process's descriptors, which callers and runs of agents leave alone.

The whole system can run out of them all the same, or somebody can lower this process's limit. What is read of /proc then
must not look as if processes were gone: one descriptor is spare, and is given up for the moment of the look.
"""

import errno
import os
import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_NONE_LEFT = (errno.EMFILE, errno.ENFILE)
_CLOSED_S, _TRIES = 0.001, 5
SHARE = 32
"""Descriptors that restarts of many processes at once need beside what they hold."""


def are_descriptors_scarce(shares: int = 1) -> bool:
    """Whether fewer than so many shares are free; of a small limit a share is a quarter."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:  # none is left to look with
        return True
    return most - used < shares * min(SHARE, most // 4)


class SpareDescriptor:
    """One that is held to be given up while something is read, from any thread; only who calls `hold` has one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: int | None = None
        self._is_wanted = False

    def hold(self) -> None:
        """Have one from now on."""
        with self._lock:
            self._is_wanted = True
            self._take()

    def read(self, look: Callable[[], T]) -> T:
        """What the look returns, made again in the place of the spare one if no descriptor is left. Raises OSError."""
        try:
            return look()
        except OSError as error:
            if error.errno not in _NONE_LEFT:
                raise
        with self._lock:
            tries = _TRIES if self._is_wanted else 1
            while True:
                tries -= 1
                if self._is_wanted and self._file is None:
                    time.sleep(_CLOSED_S)  # another thread looks in its place, and closes it in a moment
                self._give_up()
                try:
                    return look()
                except OSError as error:
                    if error.errno not in _NONE_LEFT or not tries:
                        raise
                finally:
                    self._take()

    def regain(self) -> None:
        """Have one again, after what a look returned in its place was closed."""
        if self._is_wanted and self._file is None:
            with self._lock:
                self._take()

    def _take(self) -> None:
        if self._is_wanted and self._file is None:
            with suppress(OSError):  # another thread was quicker; it is taken after the next look
                self._file = os.open(os.devnull, os.O_RDONLY)

    def _give_up(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


SPARE = SpareDescriptor()
"""That of this process."""
