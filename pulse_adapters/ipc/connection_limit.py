"""Limits connections: an idle connection never keeps a new one out."""

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager

from pulse_adapters.ipc.peer import Peer
from pulse_adapters.ipc.protocol import Crowded, NotWelcome, error_line
from pulse_adapters.ipc.wire import Wire, WireLimits
from pulse_adapters.workers.descriptor_share import are_descriptors_scarce
from pulse_core.model.payload import Role

GIVEN_AWAY = error_line(Crowded("others needed the place of this connection, on which nothing was asked"))


class ConnectionLimit:
    """The callers, at most as many as the limits say; owns a task for each.

    When it is full, or the process short of descriptors, who is idle makes room, never one with a request under way. The
    one to go is of the user with most connections, there of the process with most, and there the one that has been idle
    longest: whoever opens many loses many, and what others hold stays.
    """

    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._callers: dict[asyncio.Task[None], Wire] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._followers = 0

    def refusal(self, peer: Peer) -> str:
        """Why there is no room for this peer, or nothing; then there is, if need be because another one went."""
        rivals = self._rivals(peer)
        if rivals is None:
            return ""
        if task := self._dispensable(peer, rivals):
            self._dismiss(task)
            return ""
        return f"there is no room beside {len(rivals)} callers that have a request under way; try again later"

    def add(self, wire: Wire, work: Coroutine[None, None, None]) -> None:
        """Talk to this caller, in a task that ends when either side hangs up."""
        task = asyncio.get_running_loop().create_task(work, name=f"caller {wire.peer.pid}")
        self._callers[task] = wire
        task.add_done_callback(self._gone)
        wire.owner = task

    @contextmanager
    def following(self) -> Iterator[None]:
        """Inside, a caller follows without an end; raises NotWelcome if so many do that others need the room."""
        if self._followers >= self._limits.followers:
            raise NotWelcome(
                f"{self._followers} callers follow the log already, and that is enough; end one of them first"
            )
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1

    async def close(self) -> None:
        """Hang up on everybody, and wait until nothing is worked on any more."""
        wires, tasks = tuple(self._callers.values()), {*self._callers, *self._leaving}
        for wire in wires:
            wire.close()  # here, since a task that has not begun yet would not do it
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for wire in wires:
            wire.abort()
        await asyncio.sleep(0)  # asyncio closes the sockets one turn later

    def _rivals(self, peer: Peer) -> Collection[asyncio.Task[None]] | None:
        """The tasks of those of whom one must go before this peer can come; None if there is room."""
        agents = [task for task, other in self._callers.items() if other.peer.role < Role.PERSON]
        if peer.role < Role.PERSON and len(agents) >= self._limits.agents:
            return agents
        is_full = len(self._callers) >= self._limits.connections
        return self._callers if is_full or (self._callers and are_descriptors_scarce()) else None

    def _dispensable(
        self, newcomer: Peer, rivals: Collection[asyncio.Task[None]]
    ) -> asyncio.Task[None] | None:
        """The rival that makes room, or None if all are at work."""
        peers = [newcomer, *(self._callers[task].peer for task in rivals)]
        users, processes = Counter(peer.uid for peer in peers), Counter(peer.pid for peer in peers)

        def weight(task: asyncio.Task[None]) -> tuple[int, int, float]:
            wire = self._callers[task]
            return users[wire.peer.uid], processes[wire.peer.pid], -wire.since

        idle = (task for task in rivals if self._callers[task].is_idle())
        heaviest = sorted(idle, key=weight, reverse=True)
        return next((task for task in heaviest if not self._callers[task].has_news()), None)

    def _dismiss(self, task: asyncio.Task[None]) -> None:
        """Hang up on an idle caller; it counts no more, and its task ends at the loop's next turn.

        It may be about to ask, and is told that it can come again.
        """
        self._leaving.add(task)
        wire = self._callers.pop(task)
        wire.say(GIVEN_AWAY)
        wire.drop()

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._callers.pop(task, None)
        self._leaving.discard(task)
