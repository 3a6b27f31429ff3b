"""The daemon's end of the socket: checks who calls, reads requests, sends the handler's answers."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from pulse_adapters.ipc.connection_limit import ConnectionLimit
from pulse_adapters.ipc.loop_share import LoopShare
from pulse_adapters.ipc.peer import Peer, peer_of
from pulse_adapters.ipc.protocol import (
    END,
    Crowded,
    InternalError,
    NotWelcome,
    error_line,
    fileless_address,
    has_no_end,
    item,
    request,
    short_socket_path,
)
from pulse_adapters.ipc.wire import ConnectionClosed, Wire, WireLimits
from pulse_core.model.batches import in_batches
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role
from pulse_core.projections.state import encode_in_pieces

Answer = AsyncIterator[Mapping[str, Json]]
Handler = Callable[[Peer, Mapping[str, Json]], Answer]
OnError = Callable[[Exception], None]
PeerOf = Callable[[socket.socket], Peer]

_LIMITS = WireLimits()
_QUEUE = 100
LARGE, LEVELS, PIECE = "state", 4, 1 << 16
"""What is asked for where an answer may have any size; how far down its mappings that is encoded in parts; and how many
characters are sent at a time."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S, _EXHAUSTED_S = 0.002, 0.01, 1.0
_OURS = frozenset({"lock", "lock.new", "pid", "reserve", "pulse.sock"})


class SocketUnusable(PulseError):
    """The socket can't be made at its place."""


@asynccontextmanager
async def serve(
    path: Path,
    handler: Handler,
    *,
    owner: int,
    on_error: OnError,
    group: int | None = None,
    sign: Path | None = None,
    limits: WireLimits = _LIMITS,
) -> AsyncIterator[None]:
    """Answer at this socket while inside; leaving hangs up on everybody.

    owner: the home's user, who with root is a PERSON; group: the gid of those who are AGENTs. sign: where to leave a
    symbolic link to the socket if it is not in the home. on_error is told of what the handler raises and is
    no PulseError. The caller holds the home's lock.
    """
    listening = bind_socket(path, owner, group)
    placed = [(path, os.lstat(path))]
    if sign and sign != path:
        link_socket(sign, path)
        placed.append((sign, os.lstat(sign)))
    async with _serving(listening, handler, owner, on_error, group, limits):
        try:
            yield
        finally:
            for place, mine in placed:
                remove_socket(place, mine)


@asynccontextmanager
async def serve_without_file(
    path: Path, handler: Handler, *, owner: int, on_error: OnError, limits: WireLimits = _LIMITS
) -> AsyncIterator[None]:
    """As `serve`, for the home's user and root alone, where no file can be made at the path."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listening.bind(fileless_address(path))
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"another one answers for {path}: {error.strerror}") from error
    async with _serving(listening, handler, owner, on_error, None, limits):
        yield


@asynccontextmanager
async def _serving(
    listening: socket.socket,
    handler: Handler,
    owner: int,
    on_error: OnError,
    group: int | None,
    limits: WireLimits,
) -> AsyncIterator[None]:
    connections = _ConnectionHandler(partial(peer_of, owner=owner, group=group), handler, on_error, limits)
    listening.listen(_QUEUE)
    letting_in = asyncio.create_task(_let_in(listening, connections), name="letting callers in")
    try:
        yield
    finally:
        letting_in.cancel()
        await asyncio.wait([letting_in])
        listening.close()
        await connections.limit.close()


async def _let_in(listening: socket.socket, connections: "_ConnectionHandler") -> None:
    """Let callers in one by one, with a pause after each: a crowd waits in the kernel, and never has the whole loop."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listening)
        except OSError:  # no descriptor is left, or no memory; the caller goes on waiting
            await asyncio.sleep(_EXHAUSTED_S)
            continue
        began = loop.time()
        with suppress(OSError):  # this caller is gone
            await loop.connect_accepted_socket(connections.wire, connection)
        await asyncio.sleep(min(max(_SHORTEST_PAUSE_S, 3 * (loop.time() - began)), _LONGEST_PAUSE_S))
        await connections.share.turn()


class _ConnectionHandler:
    """Lets callers in, and answers their requests one after another."""

    def __init__(self, peer_of: PeerOf, handler: Handler, on_error: OnError, limits: WireLimits) -> None:
        self._peer_of, self._handler, self._on_error, self._limits = peer_of, handler, on_error, limits
        self.limit = ConnectionLimit(limits)
        self.share = LoopShare(limits.share, limits.burst)

    def wire(self) -> Wire:
        """A wire for the next caller."""
        return Wire(self._limits, self._opened)

    def _opened(self, wire: Wire, transport: asyncio.Transport) -> None:
        wire.peer = peer = self._peer_of(transport.get_extra_info("socket"))
        if words := _unwelcome(peer):
            return _turn_away(wire, NotWelcome(words))
        if words := self.limit.refusal(peer):
            return _turn_away(wire, Crowded(words))
        return self.limit.add(wire, self._converse(wire))

    async def _converse(self, wire: Wire) -> None:
        try:
            while True:
                line = await wire.line()
                await self.share.turn()
                await self._answer(wire, line)
        except ConnectionClosed:
            pass
        finally:
            wire.close()

    async def _answer(self, wire: Wire, line: bytes) -> None:
        op = ""
        try:
            asked = request(line)
            op = asked["op"]
            place = self.limit.following() if has_no_end(asked) else nullcontext()
            with place, _Heartbeat(wire, self._limits.beat):
                await _send_answers(wire, self._handler(wire.peer, asked), _pieces if op == LARGE else _whole)
            await wire.send(END)
        except ConnectionClosed:
            raise
        except PulseError as error:
            await wire.send(error_line(error))
        except Exception as error:  # noqa: BLE001 - one caller's request must not end the daemon; it is passed on
            self._on_error(error)
            words = f"the daemon failed at {op!r} ({type(error).__name__}); its log says more"
            await wire.send(error_line(InternalError(words)))


def _turn_away(wire: Wire, error: NotWelcome) -> None:
    wire.say(error_line(error))
    wire.close()


def _unwelcome(peer: Peer) -> str:
    """Why this peer may never come in, or nothing."""
    if peer.role == Role.NOBODY:
        return f"user {peer.uid} may not talk to this Pulse; its owner can allow a group in [socket]"
    return ""


def _whole(answer: Mapping[str, Json]) -> Iterable[bytes]:
    return (item(answer),)


def _pieces(answer: Mapping[str, Json]) -> Iterator[bytes]:
    """The line of a large answer, a part at a time: to encode all of it would hold up the loop, and all of it would lie in
    memory until it is read."""
    texts = encode_in_pieces({"item": answer}, LEVELS)
    for some in in_batches(texts, PIECE, len, PIECE):
        yield "".join(some).encode()
    yield b"\n"


async def _send_answers(
    wire: Wire, answers: Answer, line_of: Callable[[Mapping[str, Json]], Iterable[bytes]]
) -> None:
    """Send the answers as they come, and end whoever makes them when nobody listens any more."""
    try:
        async for answer in answers:
            for part in line_of(answer):
                wire.is_in_line = not part.endswith(b"\n")
                await wire.send(part)
                await asyncio.sleep(0)
    finally:
        if isinstance(answers, AsyncGenerator):
            await answers.aclose()


class _Heartbeat:
    """Inside, the caller is told now and then that its request is being worked on."""

    def __init__(self, wire: Wire, every: float) -> None:
        self._wire, self._every = wire, every
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        self._timer = self._loop.call_later(self._every, self._beat)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _beat(self) -> None:
        self._wire.still_here()
        self._timer = self._loop.call_later(self._every, self._beat)


def bind_socket(path: Path, owner: int, group: int | None) -> socket.socket:
    """A socket bound at the path, for its owner (and the group) alone; a stale one there is removed.

    Only for whoever holds the home's lock: nobody else's socket can be at that place then.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        _prepare(path, owner, group)
        _remove_stale(path)
        with short_socket_path(path) as address:
            listening.bind(address)
        _hand_over(
            path, owner, group, 0o600 if group is None else 0o660
        )  # before listen: nobody can connect yet
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"no socket can be made at {path}: {error.strerror or error}") from error
    except PulseError:
        listening.close()
        raise
    return listening


def link_socket(sign: Path, path: Path) -> None:
    """A symbolic link at `sign` to the socket, for those who know only the home."""
    try:
        _remove_stale(sign)
        sign.symlink_to(path)
    except OSError as error:
        raise SocketUnusable(f"{sign} can't be made to point to {path}: {error.strerror}") from error


def remove_socket(path: Path, mine: os.stat_result) -> None:
    """Take away what we put there, if it is still ours."""
    with suppress(OSError):
        if os.path.samestat(os.lstat(path), mine):
            path.unlink()


def remove_empty(directory: Path) -> None:
    """Take away a socket's own directory, unless something else lies there."""
    with suppress(OSError):
        directory.rmdir()


def _prepare(path: Path, owner: int, group: int | None) -> None:
    """Make the directory, or close it to others; one that holds other people's things is left alone."""
    directory, mode = path.parent, 0o700 if group is None else 0o750
    if not directory.exists():
        directory.mkdir(mode=0o700, parents=True)
        return _hand_over(directory, owner, group, mode)
    found = directory.stat()
    if stat.S_IMODE(found.st_mode) == mode and group in (None, found.st_gid):
        return None
    others = sorted(set(os.listdir(directory)) - _OURS - {path.name})
    if others or found.st_uid not in (os.geteuid(), owner):
        why = f"holds other things ({others[0]!r})" if others else "belongs to another user"
        raise SocketUnusable(
            f"{directory} {why}, so it can't be closed to others; give the socket a directory of its own"
        )
    return _hand_over(directory, owner, group, mode)


def _hand_over(path: Path, owner: int, group: int | None, mode: int) -> None:
    if os.geteuid() == 0 or group is not None:
        os.chown(path, owner if os.geteuid() == 0 else -1, -1 if group is None else group)
    os.chmod(path, mode)


def _remove_stale(path: Path) -> None:
    with suppress(FileNotFoundError):
        found = path.lstat()
        if not (stat.S_ISSOCK(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            raise SocketUnusable(f"{path} is in the way and no socket; move it elsewhere")
        path.unlink()
