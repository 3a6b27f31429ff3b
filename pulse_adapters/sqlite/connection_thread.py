"""A connection with a thread of its own that is always waited for."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TypeVar

import aiosqlite

T = TypeVar("T")


class ThreadConnection(aiosqlite.Connection):
    """A connection in whose thread more can be done with it than aiosqlite offers."""

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What this function returns of the connection. Raises sqlite3.ProgrammingError once that is closed."""
        if self._connection is None:
            raise sqlite3.ProgrammingError("the connection is closed")
        result: T = await self._execute(lambda: work(self._conn))  # type: ignore[no-untyped-call]  # as it is there
        return result


@asynccontextmanager
async def connect_in_thread(
    connect: Callable[[], tuple[sqlite3.Connection, T]],
) -> AsyncIterator[tuple[ThreadConnection, T]]:
    """Run `connect` in the connection's thread; what it returns beside the connection is passed on.

    Its error is raised here, once the thread has ended.

    aiosqlite itself does not wait for the thread of a connection that could not be made, and that thread
    then speaks to a loop that may be closed. So it is given one that can always be made.
    """
    outcome: Future[T] = Future()

    def attempt() -> sqlite3.Connection:
        try:
            connection, more = connect()
        except Exception as error:  # noqa: BLE001  raised below, on the caller's side
            outcome.set_exception(error)
            return sqlite3.connect(":memory:")
        outcome.set_result(more)
        return connection

    connection = ThreadConnection(attempt, 64)
    async with connection:
        yield connection, outcome.result()
