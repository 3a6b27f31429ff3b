"""The name of a log on this machine, which one daemon holds: that of a copied home would guard the same processes again.

It is an abstract socket, which the kernel takes back from whoever dies, and no disk is asked. Other users could hold it
first: so only a daemon of this user counts, and where another user holds the name a daemon takes a longer one, which begins
so and which nobody could know before; whoever looks finds that, too. Each network namespace has such names of its own: those
of others are read in /proc, where their processes are those of this PID namespace, too, which both daemons would guard.
"""

import asyncio
import errno
import os
import re
import secrets
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pulse_adapters.workers.proc import command_line, uid_of
from pulse_core.model.errors import PulseError

_STEP = 0.02
_BACKLOG = 4_096
_SOCKET = re.compile(rb"[0-9a-f]+: (?:[0-9A-F]+ ){5} *([0-9]+) (@.*)")
"""What the kernel says of a socket: five numbers, the inode, and the name."""
_SUFFIX = re.compile(rb"-[0-9a-f]{16}")
_MOST = 10_000
"""Sockets of strangers that are asked whose they are."""


async def hold_name(home: str, log: str, wait: float) -> socket.socket:
    """Hold the name until the socket is closed. wait: seconds that another daemon is given to end.

    Raises PulseError if a daemon of this user holds it.
    """
    name, until = _name_of(log), time.monotonic() + wait
    while True:
        own = socket.socket(socket.AF_UNIX)
        try:
            pid = _take(own, name)
        except OSError:
            return own  # of no use; but nobody's daemon is kept from what it is for
        if pid is None:
            return own
        own.close()
        if time.monotonic() >= until:
            other, who = _home_of(pid), f"as process {pid}" if pid else "in another PID namespace"
            raise PulseError(
                f"{home} is a copy of {other or 'a home'} whose daemon runs, {who}, and both would guard the "
                f"same processes; end that one first{f' (upulse daemon stop --home {other})' if other else ''}, or "
                "make another home (upulse init)"
            )
        await asyncio.sleep(_STEP)


def is_held(log: str) -> bool:
    """Whether a daemon of this user holds the name of this log here."""
    return _holder_here(_name_of(log)) is not None


def holder_begun_at(home: Path, log: str) -> int | None:
    """The daemon of this user that holds the name of this log here and was begun for the home in this place; else None."""
    pid = _holder_here(_name_of(log))
    return pid if pid and str(home) in command_line(pid) else None


def holder_elsewhere(home: Path, log: str) -> tuple[int, str] | None:
    """The daemon of this user that holds the name of this log here and lies in another place; its home, if known."""
    pid = _holder_here(_name_of(log))
    return (pid, _home_of(pid)) if pid and str(home) not in command_line(pid) else None


def _take(own: socket.socket, name: str) -> int | None:
    """Have a socket hold a name; the process of this user that holds it already, if there is one. Raises OSError."""
    try:
        own.bind(name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        if (pid := _holder(name)) is not None:
            return pid
        own.bind(f"{name}-{secrets.token_hex(8)}")
    own.listen(_BACKLOG)
    here = _holder_here(name, os.fsdecode(own.getsockname()))
    return _holder_elsewhere(name) if here is None else here


def _name_of(log: str) -> str:
    return f"\0pulse-{os.geteuid()}-{log}"


def _home_of(pid: int) -> str:
    """The home of a daemon, wherever it lies by now; empty if nobody can tell, or its file system is gone."""
    with suppress(OSError):
        for file in map(Path, _descriptors(str(pid))):
            if file.parts[-2:] == ("run", "lock"):
                return str(file.parent.parent) if file.exists() else ""
    return ""


def _holder(name: str) -> int | None:
    """The process of this user that holds a name; None if nobody can be said to, 0 if it has no number here."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.setblocking(False)
        try:
            asked.connect(name)
        except OSError:
            return None
        pid, uid, _ = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid if uid == os.geteuid() else None


def _holder_here(name: str, besides: str = "") -> int | None:
    """The process of this user that holds a name, or one that begins with it."""
    names = (os.fsdecode(there) for _, there in _sockets_with(name, "self"))
    found = (_holder(f"\0{one[1:]}") for one in islice(names, _MOST) if f"\0{one[1:]}" != besides)
    return next((pid for pid in found if pid is not None), None)


def _holder_elsewhere(name: str) -> int | None:
    """The process of this user that holds a name in another network namespace, and is in this PID namespace."""
    here, pids = os.stat("/proc/self/ns/net").st_ino, os.stat("/proc/self/ns/pid").st_ino
    sockets: dict[int, frozenset[str]] = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):  # it is gone, or another user's
            net = os.stat(f"/proc/{pid}/ns/net").st_ino
            if (
                net == here
                or os.stat(f"/proc/{pid}/ns/pid").st_ino != pids
                or uid_of(int(pid)) != os.geteuid()
            ):
                continue
            if net not in sockets:
                sockets[net] = _sockets_of(name, pid)
            if sockets[net] and not sockets[net].isdisjoint(_descriptors(pid)):
                return int(pid)
    return None


def _sockets_of(name: str, pid: str) -> frozenset[str]:
    """The sockets with this name in the network namespace of a process, as links to descriptors say it."""
    return frozenset(f"socket:[{inode.decode()}]" for inode, _ in _sockets_with(name, pid))


def _sockets_with(name: str, pid: str) -> Iterator[tuple[bytes, bytes]]:
    """The inode and the whole name of each socket with this name, or one that begins with it.

    Anybody may bind a name with line breaks in it: the rest of one is a line that says whatever its owner likes.
    """
    whole = f"@{name[1:]}".encode()
    for line in Path(f"/proc/{pid}/net/unix").read_bytes().splitlines():
        if (found := _SOCKET.fullmatch(line)) and found[2].startswith(whole):
            rest = found[2].removeprefix(whole)
            if not rest or _SUFFIX.fullmatch(rest):
                yield found[1], found[2]


def _descriptors(pid: str) -> Iterator[str]:
    for number in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):  # it was closed
            yield os.readlink(f"/proc/{pid}/fd/{number}")
