"""Keeps a child running: one that ends is replaced, after pauses that grow."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from pulse_adapters.action_host.session import ENGINE, ChildSession
from pulse_adapters.workers.framing import Message
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.errors import PulseError
from pulse_core.ports import CannotLoad, EngineFault

BACKOFF, HEALTHY = Backoff(0.5, 300.0), 60.0
"""Seconds: how a child that ends is started again, and of work after which earlier ends are forgotten."""
_CLOSING = 0.5

Failed = Callable[[EngineFault], None]


class ChildDown(PulseError):
    """No child is up, so nothing was started."""


class ChildSupervisor:
    """Owns the child and calls it. failed: called with why one ended, unless the caller receives that anyway."""

    def __init__(
        self, session: ChildSession, begin: Callable[[], Awaitable[ChildSession]], failed: Failed
    ) -> None:
        self._session, self._begin, self._failed = session, begin, failed
        self._up = asyncio.Event()
        self._up.set()
        self._is_closed = False
        self._why = ""
        self._held = 0
        self._free = asyncio.Event()
        self._free.set()
        self._restarts = Restarts(BACKOFF, HEALTHY)
        self.restarts = 0
        self._task = asyncio.create_task(self._keep(), name="keep the action host alive")

    @property
    def session(self) -> ChildSession:
        """The current child, or the last one."""
        return self._session

    @property
    def alive(self) -> bool:
        """Whether a child is up."""
        return not self._is_closed and not self._session.gone.is_set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the host does not count as idle, also between two calls that belong together."""
        self._held += 1
        self._free.clear()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._free.set()

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._held or not self._session.idle.is_set():
            await self._free.wait()
            await self._session.idle.wait()

    async def ask(
        self,
        whose: str,
        message: Callable[[ChildSession], Message],
        seconds: float = math.inf,
        patience: float = math.inf,
    ) -> Message:
        """Call the child, waiting up to `patience` for one to be up. Raises ChildDown if none is, CallLost during it."""
        if not self.alive:
            try:
                async with asyncio.timeout(None if math.isinf(patience) else patience):
                    await self._wait_until_up()
            except TimeoutError:
                raise ChildDown(f"no action host is up: {self._why}") from None
        return await self._session.ask(message(self._session), whose, seconds)

    async def _wait_until_up(self) -> None:
        """Wait until a child is up. Raises ChildDown if none will be."""
        while not self.alive:
            if self._is_closed:
                raise ChildDown("this action host was closed")
            self._up.clear()  # a death may be seen here first
            await self._up.wait()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._restarts.started(loop.time())
            await self._session.gone.wait()
            self._up.clear()
            await self._tell(self._session)
            await self._replace(self._restarts.ended(loop.time()))
            self._up.set()

    async def _tell(self, session: ChildSession) -> None:
        fault = await session.reason_of_end()
        self._why = fault.message
        if not (fault.whose.startswith("watcher:") and fault.whose in session.told):
            self._failed(fault)
        if not await session.clear():
            self._failed(EngineFault(fault.whose, "something of what it began could not be ended"))

    async def _replace(self, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            self.restarts += 1
            try:
                self._session = await self._begin()
            except CannotLoad as error:
                self._why = str(error)
                self._failed(EngineFault(ENGINE, f"the action host cannot be started again: {error}"))
                pause = self._restarts.failed(asyncio.get_running_loop().time())
            else:
                return

    async def close(self) -> None:
        """End the child for good."""
        self._is_closed = True
        self._up.set()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._session.close(_CLOSING)
