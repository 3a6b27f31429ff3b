"""Ends those of a dead life that hand over to a fork of themselves all the time, and are gone before a signal arrives."""

import os
import signal
from contextlib import suppress

from pulse_adapters.host.marked_processes import Bearer
from pulse_adapters.workers.proc import ProcStat, read_stat
from pulse_core.ports.host import Life, ProcessId


class Relays:
    """Kills the process group of each bearer of a life that is over, as soon as it is found: nobody forks out of that.

    killed: those found. A group is killed in the life's own session, or in one that the bearer itself leads.
    """

    def __init__(self, life: Life | None) -> None:
        self._life = life
        self.killed: set[ProcessId] = set()

    def kill(self, seen: ProcStat, bearer: Bearer) -> None:
        """Kill the group of a process that was just read, if it bears the mark of the life and is younger."""
        life = self._life
        if life is None or bearer.effect != life.effect or seen.started < life.found.started:
            return
        if seen.session not in (life.found.pid, seen.pid) or seen.group in (0, 1, os.getpgrp()):
            return
        leader = read_stat(life.found.pid)
        if leader and leader.alive:  # it lives, or its number was given to somebody else
            return
        self.killed.add(seen.found)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(seen.group, signal.SIGKILL)
