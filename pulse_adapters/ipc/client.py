"""The command line's end of the socket: plain and synchronous, quick to import."""

import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from pulse_adapters.ipc.lock import LockUnusable, holder
from pulse_adapters.ipc.protocol import (
    VERSION,
    Crowded,
    NotWelcome,
    error_from,
    fileless_address,
    short_socket_path,
)
from pulse_core.model.errors import NotAnswering

TURN = 60.0
"""Seconds for which a client waits its turn."""

_PIECE = 64 * 1024
Say = Callable[[str], None]


def silent(_words: str) -> None:
    """Say nothing."""


class Client:
    """Asks the daemon at this socket, on one connection that is opened when first needed.

    timeout: seconds for a whole `ask`; in a `stream`, seconds for each line, be it only a sign of life. Where others take
    all the room, it first waits its turn, for TURN seconds at most; say: hears of that.
    """

    def __init__(self, path: Path, timeout: float = 10.0, say: Say = silent) -> None:
        self._path, self._timeout, self._say = path, timeout, say
        self._socket: socket.socket | None = None
        self._read = bytearray()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the next question opens a new connection."""
        if self._socket:
            self._socket.close()
        self._socket = None
        self._read.clear()

    def ask(self, op: str, /, **fields: Any) -> dict[str, Any]:
        """The one answer to a request; raises the daemon's own error, or NotAnswering."""
        answer: dict[str, Any] = {}
        for answer in self._asked(op, fields, True):  # noqa: B007 - the last one is wanted, all must be read
            pass
        return answer

    def stream(self, op: str, /, **fields: Any) -> Iterator[dict[str, Any]]:
        """The answers to a request as they come; whoever stops early has hung up."""
        return self._asked(op, fields, False)

    def _asked(self, op: str, fields: dict[str, Any], is_whole: bool) -> Iterator[dict[str, Any]]:
        """Ask, and again as long as there is no room. is_whole: the timeout is for the whole answer."""
        turn = time.monotonic() + TURN
        for pause in chain((0.02, 0.05, 0.1), repeat(0.2)):
            try:
                yield from self._answered(op, fields, time.monotonic() + self._timeout if is_whole else None)
                return
            except Crowded:
                self.close()  # as the daemon does
                if time.monotonic() > turn:
                    raise
            if pause == 0.1:
                self._say("many others are asking this daemon; waiting for a turn …")
            time.sleep(pause * (0.5 + os.getpid() % 64 / 64))  # not all of a crowd at once

    def _answered(self, op: str, fields: dict[str, Any], until: float | None) -> Iterator[dict[str, Any]]:
        over = False
        try:
            self._send({**fields, "v": VERSION, "op": op})
            while not over:
                said = self._line(until)
                over = "end" in said or "error" in said
                if "error" in said:
                    raise error_from(said["error"])
                if "item" in said:
                    yield said["item"]
        finally:
            if not over:
                self.close()

    def _send(self, request: dict[str, Any]) -> None:
        line = json.dumps(request).encode() + b"\n"
        if self._socket and _has_news(self._socket):
            self.close()  # the daemon hung up on us, who asked nothing for a while
        connection = self._socket or self._connect()
        # A daemon that turns us away says why before it hangs up: then there is something to read.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.settimeout(self._timeout)
            try:
                connection.sendall(line)
            except TimeoutError as error:
                raise self._silent() from error

    def _connect(self) -> socket.socket:
        try:
            with short_socket_path(self._path) as address:
                self._socket = self._connected(address)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            self._socket = self._connected_without_file()
            if self._socket is None:
                raise self._explained(error) from error
        except OSError as error:
            raise self._explained(error) from error
        return self._socket

    def _connected(self, address: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self._timeout)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            raise
        return connection

    def _connected_without_file(self) -> socket.socket | None:
        """A connection to the home's daemon if it could make no file for its socket; anybody may take such a name."""
        try:
            connection = self._connected(fileless_address(self._path))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", credentials)[1] in (0, os.stat(self._path.parent).st_uid):
                return connection
            connection.close()
        except OSError:
            pass
        return None

    def _line(self, until: float | None) -> dict[str, Any]:
        until = time.monotonic() + self._timeout if until is None else until
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            self._read += self._piece(until)
        found: dict[str, Any] = json.loads(self._read[:end])
        del self._read[: end + 1]
        return found

    def _piece(self, until: float) -> bytes:
        left = until - time.monotonic()
        if self._socket is None or left <= 0:
            raise self._silent()
        self._socket.settimeout(left)
        try:
            piece = self._socket.recv(_PIECE)
        except TimeoutError as error:
            raise self._silent() from error
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise NotAnswering(f"the daemon at {self._path} hung up before it answered; ask again")
        return piece

    def _way_out(self) -> str:
        """What helps where nobody serves the socket: one who holds the home can have lost it, or be about to make it."""
        try:
            found = holder(self._path.with_name("lock"))
        except LockUnusable as error:
            return str(error)
        if found is None:
            return "start one with: upulse daemon start"
        return (
            f"process {found.pid} holds the home: try again in some seconds, move away what lies there and is no "
            "socket, or see upulse daemon logs"
        )

    def _is_left_over(self) -> bool:
        """Whether nobody can be serving here: the lock beside the socket can be read, and nobody holds it."""
        lock = self._path.with_name("lock")
        return os.access(lock, os.R_OK) and holder(lock) is None

    def _is_own(self) -> bool:
        """Whether the directory of the socket is this user's."""
        with suppress(OSError):
            return os.stat(self._path.parent).st_uid == os.geteuid()
        return False

    def _silent(self) -> NotAnswering:
        return NotAnswering(
            f"the daemon at {self._path} has not answered for {self._timeout:g} s; "
            "it may be stuck: see upulse daemon logs"
        )

    def _explained(self, error: OSError) -> NotAnswering | NotWelcome:
        match error:
            case TimeoutError():
                return self._silent()
            case BlockingIOError():  # the kernel's queue of those who call is full
                return Crowded(f"too many others call the daemon at {self._path}; try again later")
            case FileNotFoundError() | ConnectionRefusedError() | NotADirectoryError():
                return NotAnswering(f"no daemon answers at {self._path}; {self._way_out()}")
            case PermissionError() if self._is_left_over():
                return NotAnswering(f"no daemon answers at {self._path}; its owner can start one")
            case PermissionError() if not self._is_own():
                return NotWelcome(f"{self._path} is not for this user; ask its owner for the socket's group")
            case _:
                return NotAnswering(f"{self._path} can't be reached: {error.strerror or error}")


def _has_news(connection: socket.socket) -> bool:
    """Whether there is something to read, or the other end is gone."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
