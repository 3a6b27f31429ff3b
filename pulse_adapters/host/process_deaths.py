"""Tells at once when a process dies, by its pidfd."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from pulse_adapters.host.marked_processes import variables_in
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import environment, open_pidfd
from pulse_core.ports.host import ProcessId

LOG = logging.getLogger("pulse.host")
MOST_KEPT = 64 << 10
"""Bytes of an environment that are kept: a process may give itself one of mebibytes, and each of its variables is looked for
in its last lines, for which its death waits, and the loop with it."""


class ProcessDeaths:
    """Watches processes, children of this one or not, and reports the death of each once."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._handles: dict[ProcessId, int | None] = {}
        self._environments: dict[ProcessId, bytes] = {}
        self._reported: set[ProcessId] = set()

    def __contains__(self, found: ProcessId) -> bool:
        """Whether this one is watched, or its death was reported."""
        return found in self._handles or found in self._reported

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        """Watch exactly these from now on; each death is reported once, even if the dead is asked for again."""
        wanted = frozenset(found)
        self._reported &= wanted
        for gone in self._environments.keys() - wanted:
            del self._environments[gone]
        for gone in self._handles.keys() - wanted:
            self._release(gone)
        self._died = died
        for one in wanted - self._handles.keys() - self._reported:
            self._environments[one] = environment(
                one.pid, MOST_KEPT
            )  # nobody can ask it any more once it is dead
            self._watch(one)

    def variables(self, found: ProcessId) -> Mapping[str, str]:
        """What one of these was started with, dead or alive, as far as it is kept; empty if it was not to be read."""
        return variables_in(self._environments.get(found, b""))

    def may_have_more(self, found: ProcessId) -> bool:
        """Whether it was started with more than is kept."""
        return len(self._environments.get(found, b"")) >= MOST_KEPT

    def close(self) -> None:
        """Stop watching all processes."""
        for found in list(self._handles):
            self._release(found)

    def _watch(self, found: ProcessId) -> None:
        loop = asyncio.get_running_loop()
        if end := self._spawner.end_of_child(found):  # a second pidfd of it would cost a second descriptor
            self._handles[found] = None
            end.add_done_callback(lambda _: self._report(found))
            return
        handle = None
        try:
            if (handle := open_pidfd(found)) is not None:
                loop.add_reader(handle, self._report, found)
        except OSError as error:
            # The next look is the safety net, and tries again; losing this one would be worse.
            LOG.warning("cannot hold process %d by a pidfd: %s", found.pid, error.strerror)
            if handle is not None:
                os.close(handle)
            return
        self._handles[found] = handle
        if handle is None:
            loop.call_soon(self._report, found)

    def _report(self, found: ProcessId) -> None:
        if found not in self._handles:  # it was released after the call was due
            return
        self._release(found)
        self._reported.add(found)
        if not self._spawner.reaps(found.pid):  # else the spawner waits for its exit code
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, found.pid, os.WEXITED | os.WNOHANG)
        self._died(found)

    def _release(self, found: ProcessId) -> None:
        handle = self._handles.pop(found)
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)
