"""Users: their names, the one that a child takes on, and where that one finds the code that the child loads."""

import asyncio
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.spawn import ProcessUser
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import Revision


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
    try:
        known = pwd.getpwnam(name)
    except KeyError as error:
        raise PulseError(f"there is no user {name!r} on this machine") from error
    if known.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise PulseError(
            f"only root's daemon can start it as {name!r}; install that (sudo upulse daemon install), "
            "or take `user` away"
        )
    return _account(known)


def owner_of(path: str | os.PathLike[str], *, is_followed: bool = True) -> ProcessUser | None:
    """Whose this is, if root runs this and it is another user's: as root nothing may be run that obeys what lies there.

    is_followed: of a link it is whose that is to which it leads, and not whose it is itself.
    """
    found = os.stat(path, follow_symlinks=is_followed)
    if os.geteuid() != 0 or found.st_uid == 0:
        return None
    try:
        return _account(pwd.getpwuid(found.st_uid))
    except KeyError:
        return ProcessUser(str(found.st_uid), "/", found.st_uid, found.st_gid, ())


def may_enter(user: ProcessUser, path: Path) -> bool:
    """Whether a user may enter this folder, and all that it lies in."""
    found = [(one.st_mode, one.st_uid, one.st_gid) for one in map(os.stat, (path, *path.parents))]
    return all(
        mode & (0o100 if uid == user.uid else 0o010 if gid in user.groups else 0o001)
        for mode, uid, gid in found
    )


def _account(known: pwd.struct_passwd) -> ProcessUser:
    groups = os.getgrouplist(known.pw_name, known.pw_gid)
    return ProcessUser(known.pw_name, known.pw_dir, known.pw_uid, known.pw_gid, tuple(groups))
