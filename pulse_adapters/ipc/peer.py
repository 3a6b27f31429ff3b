"""Identifies the peer of a socket by what the kernel reports, not by what the caller claims."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pulse_adapters.workers.users import NAME_S, find_group, find_user, group_names
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.payload import Role

_PEERGROUPS = 59  # SO_PEERGROUPS, Linux 4.13; the socket module has no name for it
_ROOM = 1024


@dataclass(frozen=True, slots=True)
class Peer:
    """A caller: its process when it connected, its user, its main group, and what that entitles it to."""

    pid: int
    uid: int
    gid: int
    role: Role


def peer_of(connection: socket.socket, owner: int, group: int | None) -> Peer:
    """The caller at the other end. owner: the home's user; group: gid of those who may do what an agent may."""
    pid, uid, gid = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    if uid in (0, owner):
        return Peer(pid, uid, gid, Role.PERSON)
    member = group is not None and group in (gid, *_groups(connection, uid, gid))
    return Peer(pid, uid, gid, Role.AGENT if member else Role.NOBODY)


def group_id(name: str) -> int:
    """The gid of a group by its name; UnknownName if the machine has none of that name."""
    if (found := find_group(name)) is None:
        raise UnknownName("group", name, group_names())
    return found.gid


def _groups(connection: socket.socket, uid: int, gid: int) -> Sequence[int]:
    """The caller's other groups: as the kernel has them, or by the user database where it can't be asked."""
    with suppress(OSError):
        found = connection.getsockopt(socket.SOL_SOCKET, _PEERGROUPS, _ROOM)
        return struct.unpack(f"{len(found) // 4}I", found)
    with suppress(PulseError):
        user = find_user(uid, NAME_S)
        return user.groups if user else ()
    return ()
