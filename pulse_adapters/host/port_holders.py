"""Who holds a port in the place of the process that should."""

import asyncio
import os
from collections.abc import Sequence

from pulse_adapters.host.listening_ports import (
    ListeningAddress,
    ListeningSocket,
    holds_socket,
    listening_inodes,
    listening_sockets,
)
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import (
    descendants,
    described,
    environment,
    has_marker,
    live_processes,
    pids,
    program_name,
    start_time_of,
)
from pulse_core.ports.host import ProcessId

_FRESH_S = 1.0
PROXIES = frozenset({"docker-proxy", "rootlessport"})
"""Programs that listen for another one, which is in a container: nobody can tell for whom."""


class PortHolders:
    """Looks up who holds a port. One list of all sockets serves all lookups of a second: on some machines it is long.

    All is read in threads: the sockets of a machine, and the descriptors of one process, may be tens of thousands.
    """

    def __init__(self) -> None:
        self._sockets: Sequence[ListeningSocket] = ()
        self._listed, self._listing = -_FRESH_S, asyncio.Lock()

    async def stranger(
        self, where: Sequence[ListeningAddress], found: ProcessId | None, since: float = 0.0
    ) -> str:
        """Who listens at these addresses, in words, if that is surely neither this process nor what came out of it.

        Empty if it is one of them, or if nobody listens there whom this user can see. found: None if it is dead; since: no
        list from before this time (of the loop) will do.
        """
        inodes = listening_inodes(where, await self._all(since))
        return await asyncio.to_thread(_stranger, where, found, inodes) if inodes else ""

    async def _all(self, since: float) -> Sequence[ListeningSocket]:
        async with self._listing:
            now = asyncio.get_running_loop().time()
            if now - self._listed >= _FRESH_S or self._listed < since:
                self._sockets = await asyncio.to_thread(lambda: tuple(listening_sockets()))
                self._listed = now
            return self._sockets


def _stranger(where: Sequence[ListeningAddress], found: ProcessId | None, inodes: frozenset[bytes]) -> str:
    """Who holds one of these sockets, as `PortHolders.stranger` says. For threads."""
    if found and holds_socket(found.pid, inodes):
        return ""
    holders = [pid for pid in pids() if holds_socket(pid, inodes)]
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
    entries = {one.pid: one for one in live_processes()}
    own, effect = descendants([found.pid], entries), _effect(found.pid)
    return any(
        pid in own
        or (pid in entries and entries[pid].session == found.pid)
        or (effect and has_marker(pid, effect))
        for pid in holders
    )


def _effect(pid: int) -> str:
    """The `PULSE_EFFECT` that a process was started with; what carries the same one came out of the same start."""
    _, mark, rest = environment(pid).partition(f"\0{EFFECT_MARK}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if mark else ""
