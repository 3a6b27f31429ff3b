"""Reads what a child prints without blocking, and keeps only the end of it."""

import asyncio
import os

KEPT = 4096
_CHUNK = 64 * 1024
_A_SECOND = 256 * 1024
"""Bytes taken in a second; the child loses what it prints beyond, and does not wait for us either."""


class Output:
    """Reads a pipe without blocking. dropped: bytes that were taken and not kept."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._loop = pipe, asyncio.get_running_loop()
        self._kept = b""
        self._room = _A_SECOND
        self._rest: asyncio.TimerHandle | None = None
        self.dropped = 0
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    def words(self) -> str:
        """The last that it printed, on one line."""
        return " ".join(self._kept.decode("utf-8", "replace").split())

    def _read(self) -> None:
        raw = self._taken()
        if not raw:
            return
        self._room -= len(raw)
        whole = self._kept + raw
        self._kept = whole[-KEPT:]
        self.dropped += len(whole) - len(self._kept)
        if self._room <= 0:
            self._loop.remove_reader(self._pipe)
            self._rest = self._loop.call_later(1.0, self._again)

    def _taken(self) -> bytes:
        try:
            raw = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return b""
        if not raw:
            self._loop.remove_reader(self._pipe)
        return raw

    def _again(self) -> None:
        self._room, self._rest = _A_SECOND, None
        self._loop.add_reader(self._pipe, self._read)

    def drain(self) -> None:
        """Take what is there at this moment."""
        if self._rest is None:
            self._read()

    def close(self) -> None:
        """Read no more."""
        if self._rest:
            self._rest.cancel()
        self._loop.remove_reader(self._pipe)
