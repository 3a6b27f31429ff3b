"""Checks whether a TCP port accepts connections, and which processes listen on it."""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.proc import pids, read_proc_file, start_time_of
from pulse_adapters.workers.process_access import as_its_user
from pulse_adapters.workers.process_memory import other_thread
from pulse_core.model.errors import PulseError
from pulse_core.model.shortages import shortage
from pulse_core.ports.host import ProcessId
from pulse_core.settings.processes import ProcessSettings

PATIENCE_S, LOCAL_S = 1.0, 0.2
"""Seconds that a connection may take; on this machine the kernel makes it at once, or has no room for it."""
UNSEEN = "who listens there is not visible to the user Pulse runs as"
"""Of an address that answers: it may be the process, so nobody is started beside it."""
_LISTEN = b"0A"
_NAMES = {"localhost": ("127.0.0.1", "::1"), "*": ("127.0.0.1", "::1")}
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class ListeningAddress(NamedTuple):
    """A numeric address to connect to."""

    family: socket.AddressFamily
    host: str
    port: int


def port_of(process: ProcessSettings) -> str:
    """The `host:port` at which it must answer; empty if it has none."""
    if not process.http:
        return process.tcp or ""
    parts = urlsplit(process.http)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


async def resolve_addresses(address: str, spawner: Spawner) -> tuple[ListeningAddress, ...]:
    """The numeric addresses of `host:port`; a name is looked up in a child, since a resolver may hang."""
    if known := numeric_addresses(address):
        return known
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    found = await spawner.run(["getent", "ahosts", host], timeout=1.0)
    if found.exit != 0:
        raise PulseError(f"the name {host!r} cannot be looked up just now")
    numbers = dict.fromkeys(line.split()[0] for line in found.output.splitlines() if line.strip())
    return tuple(ListeningAddress(kind, name, int(port)) for name in numbers if (kind := _family(name)))


def numeric_addresses(address: str) -> tuple[ListeningAddress, ...]:
    """The numeric addresses of `host:port`, if nobody has to be asked for them."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    names = _NAMES.get(host) or (_ANYWHERE.get(host, host),)
    family = _family(names[0])
    return (
        tuple(ListeningAddress(_family(name) or family, name, int(port)) for name in names) if family else ()
    )


def _family(host: str) -> socket.AddressFamily | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, host)
            return family
    return None


async def accepts_connections(where: Sequence[ListeningAddress], timeout: float = 0.0) -> bool:
    """Whether one of the addresses accepts a connection within `timeout` seconds in all; 0: as long as one may take.

    Raises PulseError if one could not be asked and none accepts: that says nothing about who listens.
    """
    lacking = ""
    usual = LOCAL_S if all(map(is_of_this_machine, where)) else PATIENCE_S
    until = asyncio.get_running_loop().time() + (timeout or usual)
    for family, host, port in where:
        try:
            with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
                async with asyncio.timeout_at(until):
                    await asyncio.get_running_loop().sock_connect(probe, (host, port))
                # A port of the ephemeral range that nobody listens on can be given to the probe itself.
                if probe.getsockname() != probe.getpeername():
                    return True
        except OSError as error:
            # A machine without the address, as ::1 where there is no IPv6, answers as one without a free port.
            if error.errno != errno.EADDRNOTAVAIL or is_of_this_machine(ListeningAddress(family, host, port)):
                lacking = shortage(error) or lacking
    if lacking:
        raise PulseError(lacking)
    return False


def is_of_this_machine(where: ListeningAddress) -> bool:
    """Whether this machine has the address; of those that one machine alone has, only its own ones can be bound."""
    if where.host == "255.255.255.255" or ip_address(where.host).is_multicast:
        return False
    try:
        with socket.socket(where.family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((where.host, 0))
            except OSError as error:
                return error.errno == errno.EADDRINUSE  # every local port is held
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:  # there is no IPv6
            return False
        raise
    return True


class ListeningSocket(NamedTuple):
    """A socket that listens on this machine: its port, the packed address it is bound to, and its inode."""

    port: int
    bound: bytes
    inode: bytes


def listening_inodes(
    wanted: Iterable[ListeningAddress], sockets: Iterable[ListeningSocket] | None = None
) -> frozenset[bytes]:
    """The inodes of the sockets on this machine that these addresses reach; sockets: all that listen, if known."""
    targets = [(one.port, socket.inet_pton(one.family, one.host)) for one in wanted]
    return frozenset(
        inode
        for port, packed, inode in (listening_sockets() if sockets is None else sockets)
        if any(port == want and _reaches(address, packed) for want, address in targets)
    )


def _reaches(address: bytes, bound: bytes) -> bool:
    """Whether a connection to `address` reaches a socket bound to `bound`."""
    anywhere = not any(bound) and (len(bound) == 16 or len(address) == 4)
    return anywhere or address == bound or bound == bytes(10) + b"\xff\xff" + address


def listening_sockets() -> Iterator[ListeningSocket]:
    """All sockets of TCP that listen on this machine."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (read_proc_file(table) or b"").splitlines()[1:]:
            field = line.split()
            if field[3] == _LISTEN:
                bound, port = field[1].split(b":")
                # The kernel prints addresses as 32-bit numbers of this machine's byte order.
                numbers = (int(bound[at : at + 8], 16) for at in range(0, len(bound), 8))
                packed = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
                yield ListeningSocket(int(port, 16), packed, field[9])


def socket_owners(inodes: frozenset[bytes]) -> tuple[ProcessId, ...]:
    """The processes that hold one of these sockets, oldest first; those of other users are invisible without root."""
    held = [pid for pid in (pids() if inodes else ()) if holds_socket(pid, inodes)]
    found = (ProcessId(pid, since) for pid in held if (since := start_time_of(pid)) is not None)
    return tuple(sorted(found, key=lambda one: one.started))


def owners_at(where: Sequence[ListeningAddress]) -> tuple[frozenset[bytes], tuple[ProcessId, ...]]:
    """The sockets that these addresses reach, and the processes that hold one. Reads a lot: for threads."""
    inodes = listening_inodes(where)
    return inodes, socket_owners(inodes)


def holds_socket(pid: int, inodes: frozenset[bytes]) -> bool:
    """Whether the process has one of these sockets open, as far as this user may see that."""
    names = {f"socket:[{inode.decode()}]" for inode in inodes}
    with as_its_user(pid):
        return not names.isdisjoint(_links(pid))


def socket_holders(inodes: Iterable[bytes]) -> Mapping[bytes, Sequence[int]]:
    """The processes that have each of these sockets open, in one pass over all. Reads a lot: for threads."""
    names = {f"socket:[{inode.decode()}]": inode for inode in inodes}
    held: dict[bytes, list[int]] = {}
    for pid in pids() if names else ():
        with as_its_user(pid):
            for inode in {names[link] for link in _links(pid) if link in names}:
                held.setdefault(inode, []).append(pid)
    return held


def _links(pid: int) -> Iterator[str]:
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        if not (names := os.listdir(folder)) and (other := other_thread(pid)):
            folder = f"/proc/{other}/fd"
            names = os.listdir(folder)
        for name in names:
            with suppress(OSError):
                yield os.readlink(f"{folder}/{name}")
