"""Reaps dead children of this process that nobody here has begun."""

import os
from collections.abc import Callable
from contextlib import suppress

from pulse_adapters.workers.proc import children, read_stat, uid_of
from pulse_adapters.workers.threads import start_thread
from pulse_core.ports.host import ProcessId

DEAD_S = 120.0
"""Seconds between two looks. Who is dead at both is awaited by nobody: git as another user, the longest, has 100 s."""


class UnknownChildren:
    """Dead children that a program of another user has begun as children of its own parent (CLONE_PARENT).

    Nobody else can reap them, and until then they count: its own limit of processes and the machine's are used up by them
    even when that program is stopped. Children of this process's own user are left, since others here may wait for them, and
    who has begun them could end this process as well.
    """

    def __init__(self, is_awaited: Callable[[int], bool]) -> None:
        self._is_awaited = is_awaited
        self._dead: frozenset[ProcessId] = frozenset()
        self._next = 0.0

    def look(self, now: float) -> None:
        """Reap them if it is time, in a thread that nobody waits for, since there may be many."""
        if now >= self._next:
            self._next = now + DEAD_S
            with suppress(BlockingIOError):
                start_thread(self.reap, "unknown children")

    def reap(self) -> None:
        """Reap those that were dead at the last look, too. Reads a lot: for threads."""
        with suppress(OSError):  # no descriptors: the next look has some
            dead = frozenset(self._unknown())
            for found in dead & self._dead:
                with suppress(ChildProcessError):
                    os.waitid(os.P_PID, found.pid, os.WEXITED | os.WNOHANG)
            self._dead = dead

    def _unknown(self) -> list[ProcessId]:
        own = os.getuid()
        seen = (read_stat(pid) for pid in children(os.getpid()) if not self._is_awaited(pid))
        return [one.found for one in seen if one and not one.alive and uid_of(one.pid) not in (own, None)]
