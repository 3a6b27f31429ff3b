"""Who holds a port in the place of the process that should."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence

from pulse_adapters.host.listening_ports import (
    ListeningAddress,
    holds_socket,
    listening_inodes,
    listening_sockets,
    socket_holders,
)
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import (
    described,
    environment,
    has_marker,
    program_name,
    read_stat,
    start_time_of,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_core.ports.host import ProcessId

_FRESH_S = 1.0
PROXIES = frozenset({"docker-proxy", "rootlessport"})
"""Programs that listen for another one, which is in a container: nobody can tell for whom."""


class _SocketList:
    """All sockets that listened at one moment."""

    def __init__(self) -> None:
        self.sockets = tuple(listening_sockets())
        self._holders: Mapping[bytes, Sequence[int]] | None = None
        self._lock = threading.Lock()

    def holders(self, inodes: frozenset[bytes]) -> Sequence[int]:
        """Who holds one of these and held it when that was first looked up, for all sockets at once. For threads."""
        with self._lock:
            if self._holders is None:
                self._holders = socket_holders(one.inode for one in self.sockets)
        held = sorted({pid for inode in inodes for pid in self._holders.get(inode, ())})
        return [pid for pid in held if holds_socket(pid, inodes)]


class PortHolders:
    """Looks up who holds a port. One list of all sockets, and one look at who holds them, serve all lookups of a second.

    All is read in threads: the sockets of a machine, and the descriptors of its processes, may be tens of thousands.
    """

    def __init__(self) -> None:
        self._list: _SocketList | None = None
        self._listed, self._listing = 0.0, asyncio.Lock()

    async def stranger(
        self, where: Sequence[ListeningAddress], found: ProcessId | None, since: float = 0.0
    ) -> str:
        """Who listens at these addresses, in words, if that is surely neither this process nor what came out of it.

        Empty if it is one of them, or if nobody listens there whom this user can see. found: None if it is dead; since: no
        list from before this time (of the loop) will do.
        """
        listed = await self._all(since)
        inodes = listening_inodes(where, listed.sockets)
        return await in_process_thread(_stranger, where, found, inodes, listed) if inodes else ""

    async def _all(self, since: float) -> _SocketList:
        async with self._listing:
            now = asyncio.get_running_loop().time()
            if self._list is None or now - self._listed >= _FRESH_S or self._listed < since:
                self._list = await in_process_thread(_SocketList)
                self._listed = now
            return self._list


def _stranger(
    where: Sequence[ListeningAddress], found: ProcessId | None, inodes: frozenset[bytes], listed: _SocketList
) -> str:
    """Who holds one of these sockets, as `PortHolders.stranger` says. For threads."""
    if found and holds_socket(found.pid, inodes):
        return ""
    holders = listed.holders(inodes)
    if not holders or (found and _is_any_of(found, holders)):
        return ""
    if any(program_name(pid) in PROXIES for pid in holders):
        return ""
    one = where[0]
    address = f"[{one.host}]:{one.port}" if ":" in one.host else f"{one.host}:{one.port}"
    words = f"{address} is held by {described(holders[0])}"
    return f"{words}, not by {found.pid}" if found else words


def _is_any_of(found: ProcessId, holders: Sequence[int]) -> bool:
    """Whether one of them came out of this process; so it is called if it has died meanwhile."""
    if start_time_of(found.pid) != found.started:
        return True
    effect = _effect(found.pid)
    return any(_came_out_of(found.pid, pid) or (effect and has_marker(pid, effect)) for pid in holders)


def _came_out_of(ancestor: int, pid: int) -> bool:
    """Whether it is in the session that this one leads, or is this one or one of its descendants."""
    line = set[int]()
    while pid not in line and (seen := read_stat(pid)):  # a number may be given anew meanwhile
        if ancestor in (pid, seen.session if not line else 0):
            return True
        line.add(pid)
        pid = seen.parent
    return False


def _effect(pid: int) -> str:
    """The `PULSE_EFFECT` that a process was started with; what carries the same one came out of the same start."""
    _, mark, rest = environment(pid).partition(f"\0{EFFECT_MARK}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if mark else ""
