"""Users: their names, the one that a child takes on, and where that one finds the code that the child loads."""

import asyncio
import ctypes
import os
import pwd
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.spawn import ProcessUser
from pulse_adapters.workers.threads import start_thread
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import Revision

_LIBC = ctypes.CDLL(None)
PATIENCE_S, FIRST_S = 0.2, 2.0
"""Seconds in which the machine says who a user is, whom it has named before or not: it may ask systemd or a server for that,
which may hang."""
_known: dict[str | int, ProcessUser | None] = {}
"""What the machine said last, of each user that was asked for by name or number; None: there is none."""
_asked: dict[str | int, threading.Event] = {}


class RunAs(NamedTuple):
    """user: the uid and gid that the child takes on, if not ours; shown: where that user finds what lies at a path.

    `shown` raises CannotLoad; None: the user reads it where it lies.
    """

    user: tuple[int, int] | None = None
    shown: Callable[[str], str] | None = None

    async def path_of(self, revision: Revision) -> str:
        """Where the user finds a revision. Raises CannotLoad."""
        return await asyncio.to_thread(self._path_of, revision.path)

    def _path_of(self, path: str) -> str:
        return os.path.realpath(self.shown(path) if self.shown else path)


def user_name(uid: int) -> str:
    """The name of a user, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def process_user(name: str) -> ProcessUser | None:
    """Whom something is started as, if not as this process; empty: as this one. Raises PulseError if it can't be."""
    if not name:
        return None
    if (known := _account(name)) is None:
        raise PulseError(f"there is no user {name!r} on this machine")
    if known.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise PulseError(
            f"only root's daemon can start it as {name!r}; install that (sudo upulse daemon install), "
            "or take `user` away"
        )
    return known


def owner_of(path: str | os.PathLike[str], *, is_followed: bool = True) -> ProcessUser | None:
    """Whose this is, if root runs this and it is another user's: as root nothing may be run that obeys what lies there.

    is_followed: of a link it is whose that is to which it leads, and not whose it is itself.
    """
    found = os.stat(path, follow_symlinks=is_followed)
    if os.geteuid() != 0 or found.st_uid == 0:
        return None
    return _account(found.st_uid) or ProcessUser(str(found.st_uid), "/", found.st_uid, found.st_gid, ())


def may_enter(user: ProcessUser, path: Path) -> bool:
    """Whether a user may enter this folder, and all that it lies in."""
    found = [(one.st_mode, one.st_uid, one.st_gid) for one in map(os.stat, (path, *path.parents))]
    return all(
        mode & (0o100 if uid == user.uid else 0o010 if gid in user.groups else 0o001)
        for mode, uid, gid in found
    )


def _account(who: str | int) -> ProcessUser | None:
    """A user by name or number, None if there is none; as it was said last while the machine does not answer.

    It is asked in a thread: whoever asks may be the daemon's loop. Raises PulseError if nothing is known yet.
    """
    asked, is_new = _asked.get(who), False
    if asked is None:
        asked, is_new = _asked.setdefault(who, threading.Event()), True
        try:
            start_thread(partial(_ask, who, asked), "users")
        except BlockingIOError:  # no more threads
            _ask(who, asked)
    if is_new or who not in _known:
        asked.wait(PATIENCE_S if who in _known else FIRST_S)
    if who not in _known:
        raise PulseError(f"the machine does not say who the user {who!r} is")
    return _known[who]


def _ask(who: str | int, asked: threading.Event) -> None:
    try:
        found = pwd.getpwnam(who) if isinstance(who, str) else pwd.getpwuid(who)
        groups = groups_of(found.pw_name, found.pw_gid)
        _known[who] = ProcessUser(found.pw_name, found.pw_dir, found.pw_uid, found.pw_gid, groups)
    except KeyError:
        _known[who] = None
    finally:
        _asked.pop(who, None)
        asked.set()


def groups_of(name: str, gid: int) -> tuple[int, ...]:
    """The groups of a user, this one among them. `os.getgrouplist` of Python 3.11 holds all threads up while it asks."""
    room = ctypes.c_int(64)
    while True:
        size, found = room.value, (ctypes.c_uint32 * room.value)()
        if _LIBC.getgrouplist(os.fsencode(name), ctypes.c_uint32(gid), found, ctypes.byref(room)) >= 0:
            return tuple(found[: room.value])
        room.value = max(room.value, 2 * size)
