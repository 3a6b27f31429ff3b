"""The processes that carry the marks of an effect in their environment."""

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from pulse_adapters.workers.environment import EFFECT_MARK, PROCESS_MARK
from pulse_adapters.workers.proc import (
    TICKS_PER_SECOND,
    environment,
    is_alive,
    read_stat,
    start_time_of,
    ticks_now,
)
from pulse_core.ports.host import ProcessId

SETTLED = TICKS_PER_SECOND // 4
"""Clock ticks after which a process that shows no environment has none: who is just being executed shows none either."""


class Bearer(NamedTuple):
    """A process that an effect has begun; name: the `NAME@HOME` of the guarded process, empty for a command's."""

    found: ProcessId
    effect: str
    name: str


class MarkedProcesses:
    """The processes that carry the marks of an effect; each process of the machine is read once, and kept by its inode.

    So a search costs a listing of /proc, 0.3 ms for a hundred processes, and not ten times that.
    """

    def __init__(self) -> None:
        self._read: dict[int, tuple[int, Bearer | None]] = {}
        self.unsure: set[int] = set()
        """Who showed no environment at the last search, as who is just being executed does."""

    def search(self) -> Collection[int]:
        """Look for new processes; returns the pids of all."""
        kept: dict[int, tuple[int, Bearer | None]] = {}
        listing = {int(one.name): one.inode() for one in os.scandir("/proc") if one.name.isdecimal()}
        listing.pop(os.getpid(), None)
        self.unsure.clear()
        for pid, inode in listing.items():
            if (read := self._read.get(pid)) and read[0] == inode:
                kept[pid] = read
            elif (raw := environment(pid)) or _has_none(pid):
                kept[pid] = inode, _bearer(pid, raw)
            elif read_stat(pid):
                self.unsure.add(pid)
        self._read = kept
        return listing.keys()

    def bearers(self) -> Iterator[Bearer]:
        """Those that the last search found and that are alive."""
        return (one for _, one in self._read.values() if one and is_alive(one.found))


def _has_none(pid: int) -> bool:
    """Whether this process never shows an environment: of another user, of the kernel, dead, or it was cleared."""
    seen = read_stat(pid)
    return seen is not None and (not seen.alive or ticks_now() - seen.started > SETTLED)


def _bearer(pid: int, raw: bytes) -> Bearer | None:
    effect, name = _value(raw, EFFECT_MARK), _value(raw, PROCESS_MARK)
    started = start_time_of(pid) if effect else None
    return None if started is None else Bearer(ProcessId(pid, started), effect, name)


def _value(raw: bytes, variable: str) -> str:
    return os.fsdecode(raw.partition(f"\0{variable}=".encode())[2].partition(b"\0")[0])
