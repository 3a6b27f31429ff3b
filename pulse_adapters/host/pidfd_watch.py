"""Watches processes by pidfd, so that a death is known when it happens and not at the next sample."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable

from pulse_adapters.workers.proc import open_pidfd
from pulse_core.ports import ProcessId

LOG = logging.getLogger("pulse.host")

Died = Callable[[ProcessId], None]


class PidfdWatch:
    """The watched processes; each death is reported once, even if the dead process is asked for again."""

    def __init__(self, reap: Callable[[int], None]) -> None:
        self._reap = reap
        self._handles: dict[ProcessId, int | None] = {}
        self._reported: set[ProcessId] = set()

    def hold(self, found: Iterable[ProcessId], died: Died) -> None:
        """Watch exactly these; those already watched keep their descriptor."""
        wanted = frozenset(found)
        self._reported &= wanted
        for gone in self._handles.keys() - wanted:
            self._release(gone)
        fresh = wanted - self._handles.keys() - self._reported
        self._died = died
        for one in fresh:
            self._watch(one)

    def _watch(self, found: ProcessId) -> None:
        loop = asyncio.get_running_loop()
        try:
            handle = open_pidfd(found)
        except OSError as error:
            # The next look is the safety net, and tries again; losing this one would be worse.
            LOG.warning("cannot hold process %d by a pidfd: %s", found.pid, error.strerror)
            return
        self._handles[found] = handle
        if handle is None:
            loop.call_soon(self._report, found)
        else:
            loop.add_reader(handle, self._report, found)

    def _report(self, found: ProcessId) -> None:
        if found in self._handles:  # else it was released after the call was due
            self._release(found)
            self._reported.add(found)
            self._reap(found.pid)
            self._died(found)

    def _release(self, found: ProcessId) -> None:
        handle = self._handles.pop(found)
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    def close(self) -> None:
        """Close all pidfds."""
        for found in list(self._handles):
            self._release(found)
