"""Users and groups of this machine, which may ask systemd or a server who they are, and wait for that for ever.

Nobody else asks: here it is done in a thread, for which whoever wants to know waits only so long. What was said last holds
while there is no answer. The daemon's loop, which holds up all deaths, waits a moment in all, however many questions the
machine owes it the answer to: without one a start fails, and is tried again, and a caller has a number for a name.
"""

import grp
import os
import pwd
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pulse_adapters.workers.spawn import ProcessUser
from pulse_adapters.workers.threads import start_thread
from pulse_core.model.errors import PulseError

T = TypeVar("T")

PATIENCE_S, FIRST_S = 0.2, 2.0
"""Seconds for which a question is waited for that was answered before, and one that was not: by all who ask it together.
A loop waits only the first, and from the oldest question on that has no answer."""
NAME_S = 60.0
"""For how long the name of a user that was said is taken for true, in seconds: each request to the socket wants it."""
_answers: dict[str, tuple[float, Any]] = {}
"""What the machine said last to each question, and when (monotonic seconds)."""
_asked: dict[str, tuple[threading.Event, float]] = {}
"""The questions that are not answered yet, and when each was asked."""


class UserGroup(NamedTuple):
    """A group of this machine, and those who are in it besides those whose own it is."""

    name: str
    gid: int
    members: tuple[str, ...]


def find_user(who: str | int, age_s: float = 0.0) -> ProcessUser | None:
    """A user by name or number, None if there is none. Raises PulseError if the machine does not say it.

    age_s: an answer that is no older will do, in seconds.
    """

    def question() -> ProcessUser | None:
        try:
            found = pwd.getpwnam(who) if isinstance(who, str) else pwd.getpwuid(who)
        except KeyError:
            return None
        groups = groups_of(found.pw_name, found.pw_gid)
        return ProcessUser(found.pw_name, found.pw_dir, found.pw_uid, found.pw_gid, groups)

    return _ask(f"who the user {who!r} is", question, age_s)


def find_group(which: str | int) -> UserGroup | None:
    """A group by name or number, None if there is none. Raises PulseError if the machine does not say it."""

    def question() -> UserGroup | None:
        try:
            found = grp.getgrnam(which) if isinstance(which, str) else grp.getgrgid(which)
        except KeyError:
            return None
        return UserGroup(found.gr_name, found.gr_gid, tuple(found.gr_mem))

    return _ask(f"which group {which!r} is", question)


def user_names() -> Sequence[str]:
    """The names of all users, for hints. Raises PulseError if the machine does not say them."""
    return _ask("who its users are", lambda: [user.pw_name for user in pwd.getpwall()])


def group_names() -> Sequence[str]:
    """The names of all groups, for hints. Raises PulseError if the machine does not say them."""
    return _ask("which groups it has", lambda: [group.gr_name for group in grp.getgrall()])


def user_name(uid: int) -> str:
    """The name of a user, or its number if it has none, or the machine does not say it."""
    try:
        found = find_user(uid, NAME_S)
    except PulseError:
        found = None
    return found.name if found else f"uid {uid}"


def expand_home(path: str) -> str:
    """A path with the home of this process's user instead of `~`, and of another one instead of `~NAME`, if it has one."""
    if not path.startswith("~"):
        return path
    name, _, rest = path[1:].partition("/")
    home = "" if name else os.environ.get("HOME", "")
    if not home.startswith("/"):
        with suppress(PulseError):
            found = find_user(name or os.getuid(), NAME_S)
            home = found.home if found else ""
    return (os.path.join(home, rest.lstrip("/")).rstrip("/") or "/") if home else path


def process_user(name: str) -> ProcessUser | None:
    """Whom something is started as, if not as this process; empty: as this one. Raises PulseError if it can't be."""
    if not name:
        return None
    if (known := find_user(name)) is None:
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
    return find_user(found.st_uid) or ProcessUser(str(found.st_uid), "/", found.st_uid, found.st_gid, ())


def _ask(what: str, question: Callable[[], T], age_s: float = 0.0) -> T:
    """The answer of now, or that of before while there is none. Raises PulseError if nothing is known yet."""
    known: tuple[float, T] | None = _answers.get(what)
    if known and time.monotonic() - known[0] < age_s:
        return known[1]
    asked, since = _asked.get(what) or (None, 0.0)
    if asked is None:
        asked, since = _asked.setdefault(what, (threading.Event(), time.monotonic()))
        work = partial(_answer, what, question, asked)
        try:
            start_thread(work, "users")
        except BlockingIOError:  # no more threads
            work()
    patience = PATIENCE_S if known else FIRST_S
    if _is_on_loop():
        since, patience = min([since, *(at for _, at in list(_asked.values()))]), PATIENCE_S
    asked.wait(max(0.0, since + patience - time.monotonic()))
    if (known := _answers.get(what)) is None:
        raise PulseError(f"the machine does not say {what}")
    return known[1]


def _is_on_loop() -> bool:
    """Whether a loop runs in this thread. Most commands have none, and do not import what would say so."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _answer(what: str, question: Callable[[], T], asked: threading.Event) -> None:
    try:
        with suppress(
            OSError, ValueError
        ):  # as without a descriptor, or of a name with a NUL: then it has not said it
            _answers[what] = (time.monotonic(), question())
    finally:
        _asked.pop(what, None)
        asked.set()


def groups_of(name: str, gid: int) -> tuple[int, ...]:
    """The groups of a user, this one among them. `os.getgrouplist` of Python 3.11 holds all threads up while it asks."""
    import ctypes  # most commands ask for nobody's groups

    libc, room = ctypes.CDLL(None), ctypes.c_int(64)
    while True:
        size, found = room.value, (ctypes.c_uint32 * room.value)()
        if libc.getgrouplist(os.fsencode(name), ctypes.c_uint32(gid), found, ctypes.byref(room)) >= 0:
            return tuple(found[: room.value])
        room.value = max(room.value, 2 * size)
