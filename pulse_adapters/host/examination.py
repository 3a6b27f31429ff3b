"""The child that searches where a search may take long, as its parent sees it."""

import asyncio
import marshal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pulse_adapters.host.children import Children

LIMIT = 0.1
"""Seconds of CPU time that a search may take; `java.*Main.*x` on the worst line there is takes a third of that."""

_LOST = 2.0  # seconds without an answer after which a child is given up
_PROGRAM = str(Path(__file__).with_name("examiner.py"))


class Question(NamedTuple):
    """Is this expression found in this line?"""

    expression: str
    line: str


class Examination:
    """A child that answers while this is entered; its pid is in `running` until it is dead. Raises OSError."""

    def __init__(self, children: Children, running: set[int]) -> None:
        self._children, self._running = children, running

    def __enter__(self) -> Self:
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        with theirs:
            try:
                self._pid = self._started(theirs.fileno())
            except OSError:
                self._channel.close()
                raise
        return self

    def _started(self, channel: int) -> int:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", _PROGRAM, str(LIMIT)],
            stdin=channel,
            stdout=channel,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            exited = self._children.adopt(child.pid)
        except OSError:
            child.kill()
            child.wait()
            raise
        child.returncode = 0  # it is waited for by its pidfd
        self._running.add(child.pid)
        exited.add_done_callback(lambda _: self._running.discard(child.pid))
        return child.pid

    async def ask(self, question: Question) -> bytes:
        """What the child says; nothing if it is dead, or has to be killed since it says nothing."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_LOST):
                await loop.sock_sendall(self._channel, marshal.dumps(tuple(question)))
                return await loop.sock_recv(self._channel, 1)
        except (TimeoutError, OSError):
            self._children.kill(self._pid)
            return b""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it without questions: then it ends."""
        self._channel.close()
