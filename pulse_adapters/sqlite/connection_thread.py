"""A connection with a thread of its own that is always waited for."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiosqlite


@asynccontextmanager
async def connect_in_thread(connect: Callable[[], sqlite3.Connection]) -> AsyncIterator[aiosqlite.Connection]:
    """Run `connect` in the connection's thread; its error is raised here, once the thread has ended.

    aiosqlite itself does not wait for the thread of a connection that could not be made, and that thread
    then speaks to a loop that may be closed. So it is given one that can always be made.
    """
    failed: list[Exception] = []

    def attempt() -> sqlite3.Connection:
        try:
            return connect()
        except Exception as error:  # noqa: BLE001  raised below, on the caller's side
            failed.append(error)
            return sqlite3.connect(":memory:")

    async with aiosqlite.Connection(attempt, 64) as connection:
        if failed:
            raise failed[0]
        yield connection
