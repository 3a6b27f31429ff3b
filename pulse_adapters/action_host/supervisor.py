"""Keeps a child running: one that ends is replaced, after pauses that grow."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress

from pulse_adapters.action_host.process import ActionChild
from pulse_adapters.action_host.replies import CallReply
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.host_process import ENGINE
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.model.token_bucket import TokenBucket
from pulse_core.ports.engine import EngineFault

BACKOFF, HEALTHY = Backoff(0.5, 300.0), 60.0
"""Seconds: how a child that ends is started again, and of work after which earlier ends are forgotten."""
SAMPLE_BYTES_A_MINUTE = 1024 * 1024
"""Of all samples of an engine, as JSON: windows hold a minute of them, and so does each snapshot that is kept."""
_CLOSING = 0.5

Failed = Callable[[EngineFault], None]


class ChildSupervisor:
    """Owns the child, which is the last one while none is up, and calls it.

    failed: called with why one ended, unless the caller receives that anyway.
    """

    def __init__(
        self, child: ActionChild, begin: Callable[[], Awaitable[ActionChild]], failed: Failed
    ) -> None:
        self.child, self._begin, self._failed = child, begin, failed
        self._up = asyncio.Event()
        self._up.set()
        self._is_closed = False
        self._beginning = asyncio.Lock()
        self._why = ""
        self._held = 0
        self._free = asyncio.Event()
        self._free.set()
        self._samples = TokenBucket(SAMPLE_BYTES_A_MINUTE, SAMPLE_BYTES_A_MINUTE / 60)
        self.restarts = Restarts(BACKOFF, HEALTHY)
        self._task = asyncio.create_task(self._keep(), name="keep the action host alive")

    @property
    def alive(self) -> bool:
        """Whether a child is up."""
        return not self._is_closed and self.child.alive

    @property
    def is_closed(self) -> bool:
        """Whether none will be up again."""
        return self._is_closed

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the host does not count as idle: in a call, and between two that belong together."""
        self._held += 1
        self._free.clear()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._free.set()

    def spend_sample(self, size: int) -> None:
        """Count a sample of so many bytes. Raises PulseError if it must be left out."""
        if self._samples.room(asyncio.get_running_loop().time()) <= 0:
            most = f"{SAMPLE_BYTES_A_MINUTE:,} bytes"
            raise PulseError(f"its sample is left out: those of its engine take more than {most} a minute")
        self._samples.spend(size)

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._held:
            await self._free.wait()

    async def call(
        self,
        whose: str,
        message: Callable[[ActionChild], Message],
        seconds: float = math.inf,
        patience: float | None = None,
    ) -> CallReply:
        """Call the child, waiting up to `patience` for one to be up. Raises PulseError if none is, CallLost during it."""
        with nullcontext() if whose == ENGINE else self.held():
            try:
                async with asyncio.timeout(patience if not self.alive else None):
                    while not self.alive:
                        if self._is_closed:
                            raise PulseError("this action host was closed")
                        self._up.clear()  # a death may be seen here first
                        await self._up.wait()
            except TimeoutError:
                raise PulseError(f"no action host is up: {self._why}") from None
            return await self.child.call(message(self.child), whose, seconds)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self.restarts.started(loop.time())
            await self.child.gone.wait()
            self._up.clear()
            try:
                await self._tell(self.child)
            except Exception as error:  # noqa: BLE001 - the next child must begin, however this one has ended
                self._failed(EngineFault(ENGINE, f"its end can't be told: {describe_error(error)}"))
            await self._replace(self.restarts.ended(loop.time()))
            self._up.set()

    async def _tell(self, child: ActionChild) -> None:
        fault = await child.reason_of_end()
        self._why = fault.message
        if not (fault.whose.startswith("watcher:") and fault.whose in child.told):
            self._failed(fault)
        if not await child.clear():
            self._failed(EngineFault(fault.whose, "something of what it began could not be ended"))

    async def _replace(self, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            try:
                async with self._beginning:
                    self.child = await self._begin()
            except Exception as error:  # noqa: BLE001 - whatever it was, the next attempt may succeed
                self._why = describe_error(error)
                self._failed(EngineFault(ENGINE, f"the action host cannot be started again: {self._why}"))
                pause = self.restarts.failed(asyncio.get_running_loop().time())
            else:
                return

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Inside, nothing that the child has begun acts, and no other child begins."""
        async with self._beginning, self.child.frozen():
            yield

    async def close(self) -> None:
        """End the child for good."""
        self._is_closed = True
        self._up.set()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.child.shut_down(_CLOSING)
