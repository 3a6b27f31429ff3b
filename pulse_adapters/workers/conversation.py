"""Sends requests to a worker and waits for its messages: one, or a whole conversation."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.messages import decode, validator
from pulse_adapters.workers.worker import Program, Worker
from pulse_core.model.errors import PulseError

T = TypeVar("T")

WAITING = 100
"""Messages that wait to be taken before no more are read."""
PATIENCE_S = 2.0
"""Seconds that a worker has to end by itself after the last word, and to die after SIGKILL."""


class Reply(NamedTuple):
    """What a worker that does one thing answers: the answer, or the words of an error and its type's name."""

    answer: Any = None
    error: str | None = None
    kind: str = ""


class Conversation(Generic[T]):
    """A worker with which messages are exchanged in turns, made by `conversation`; each of its messages is a `kind`."""

    def __init__(self, program: Program, kind: type[T]) -> None:
        validator(kind)  # a type that cannot be decoded is no fault of the worker
        self._kind = kind
        self._waiting: deque[T] = deque()
        self._news = asyncio.Event()
        self._is_over = False
        self.worker = Worker(program, self._heard, self._gone)

    def _heard(self, message: Message) -> None:
        self._waiting.append(decode(self._kind, message))
        self._news.set()
        if len(self._waiting) >= WAITING:
            self.worker.pause()

    def _gone(self) -> None:
        self._is_over = True
        self._news.set()

    def tell(self, message: Mapping[str, object]) -> None:
        """Send a message."""
        self.worker.send(message)

    async def next(self) -> T | None:
        """The next message; None when there will be no more."""
        while not self._waiting and not self._is_over:
            self._news.clear()
            await self._news.wait()
        self.worker.resume()
        return self._waiting.popleft() if self._waiting else None

    async def end(self) -> str:
        """How it ended, and its last words; of one that has hung up or was faulty."""
        await self.worker.ended(PATIENCE_S)
        how = f"said {self.worker.fault}" if self.worker.fault else self.worker.end()
        words = self.worker.last_words()
        return f"{how}: {words}" if words else how

    async def close(self, farewell: float, gentle: float) -> None:
        """End it: it has so many seconds after the last word, and so many after SIGTERM, with all that is in its group."""
        worker = self.worker
        try:
            if farewell and not worker.has_ended:
                worker.hang_up()
                await worker.ended(farewell)
            if gentle and not worker.has_ended:
                worker.terminate()
                await worker.ended(gentle)
            if not worker.has_ended:
                worker.kill()
                await worker.ended(PATIENCE_S)
        finally:  # also of who is cancelled meanwhile
            worker.dismiss()


@asynccontextmanager
async def conversation(
    program: Program, kind: type[T], *, farewell: float = 0.0, gentle: float = 0.0
) -> AsyncIterator[Conversation[T]]:
    """Run a worker while inside. Raises OSError.

    Then it is ended. farewell: seconds that it has for that by itself when nothing more is sent; gentle: after SIGTERM.
    """
    one = Conversation(program, kind)
    try:
        yield one
    finally:
        await one.close(farewell, gentle)


async def ask(
    program: Program,
    request: Mapping[str, object],
    kind: type[T],
    *,
    seconds: float,
    gentle: float = 0.0,
    errors: Mapping[str, type[PulseError]] | None = None,
) -> T:
    """The answer of a worker that does one thing (`child_side.answer_once`).

    Raises WorkerFault for one that doesn't answer, and the PulseError that it answers with, of the type that `errors`
    gives its kind. gentle: seconds that it has to take its locks away when it is ended.
    """
    try:
        async with conversation(program, Reply, gentle=gentle) as worker, asyncio.timeout(seconds):
            worker.tell(request)
            reply = await worker.next()
            if reply is None:
                raise WorkerFault(await worker.end())
    except TimeoutError:
        raise WorkerFault(f"did not end within {seconds:g} s") from None
    except OSError as error:
        raise WorkerFault(f"could not be started: {error.strerror}") from error
    if reply.error is not None:
        raise (errors or {}).get(reply.kind, PulseError)(reply.error)
    return decode(kind, reply.answer)
