"""Where the socket lies: its directory, its mode, and what may be removed to make room for it."""

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from pulse_adapters.ipc.protocol import short_socket_path
from pulse_core.model.errors import PulseError

_OURS = frozenset({"lock", "lock.new", "pid", "reserve", "pulse.sock"})


class SocketUnusable(PulseError):
    """The socket can't be made at its place."""


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
