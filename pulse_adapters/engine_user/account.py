"""Finds or creates the engine's user account, and tells whether that can read what its code needs."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.engine_user.account_record import (
    SHARED,
    TOLD,
    NoAccount,
    recorded_name,
    remove_record,
    write_record,
)
from pulse_adapters.workers.users import find_user

_PATIENCE = 30.0
_FAILED = "no user can be made or removed"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
READABLE = "install Python and Pulse where it can, as in /opt"
"""What helps a user that can't read them."""
_PACKAGES = ("pulse_core", "pulse_adapters", "pydantic", "pydantic_core")


class Account(NamedTuple):
    """A user of this machine, and its own group."""

    name: str
    uid: int
    gid: int

    @property
    def ids(self) -> tuple[int, int]:
        """The uid and the gid."""
        return self.uid, self.gid


def find_account(name: str) -> Account | None:
    """The user of this name, if there is one."""
    entry = find_user(name)
    return Account(entry.name, entry.uid, entry.gid) if entry else None


def engine_account(home: Path, name: str | None) -> Account | None:
    """The engine's user of a home: the one of this name, or the one recorded for the home, which must be there.

    If none is, the one that homes shared before, if it is there. None, too, for whoever is not root: nobody else can give
    a process another user. Raises NoAccount.
    """
    if os.geteuid() != 0:
        return None
    meant = name or recorded_name(home)
    account = find_account(meant or SHARED)
    if account is None and meant:
        made = f"useradd --system {meant}" if name else "upulse doctor --repair"
        raise NoAccount(f"there is no user {meant!r} on this machine; make it with: {made}")
    if account and 0 in account.ids:
        raise NoAccount(f"the user {account.name!r} is root, or of root's group; name a user without rights")
    return account


def create_account(name: str) -> Account:
    """The user of this name, made now if it is not there: without a home, a login, or other groups. Needs root."""
    if account := find_account(name):
        return account
    if not _NAME.fullmatch(name):
        raise NoAccount(f"no user can be made: {name!r} is no name of one")
    file = write_record(name)
    try:
        if shutil.which("systemd-sysusers"):
            run_tool("systemd-sysusers", str(file))
        else:
            run_tool(
                "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/", "--shell",
                "/usr/sbin/nologin", "--comment", TOLD, name,
            )  # fmt: skip
    except NoAccount:
        remove_record(name)
        raise
    account = find_account(name)
    if account is None:
        raise NoAccount(
            f"the user {name!r} was made, but this machine does not know it; see: getent passwd {name}"
        )
    return account


def run_tool(*argv: str) -> None:
    """Run a tool of the machine's that makes or removes users. Raises NoAccount with what it says."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAccount(f"{_FAILED}: {argv[0]}: {error}") from error
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split()) or f"exit {done.returncode}"
        raise NoAccount(f"{_FAILED}: {argv[0]}: {words}")


def first_unreadable(account: Account, paths: Iterable[str] = ()) -> str:
    """The first file or folder that keeps the user from Python, from Pulse or from these; nothing if none does."""
    steps = (step for path in (*_needed(), *paths) for step in _steps(path))
    return next((step for step in steps if not _is_open(account, step)), "")


def _needed() -> Iterator[str]:
    """What stands for the whole of each: the interpreter, its library, and each package."""
    yield sys.executable
    yield str(os.__file__)
    for name in _PACKAGES:
        if module := sys.modules.get(name):
            yield str(module.__file__)


def _steps(path: str) -> Iterator[str]:
    """Each folder on the way, and the file itself, without links."""
    for place in (Path(os.path.abspath(path)), Path(os.path.realpath(path))):
        yield from (str(one) for one in (*reversed(place.parents), place) if not one.is_symlink())


def _is_open(account: Account, path: str) -> bool:
    """Whether it may search this folder, or read this file. An access list that says otherwise is not looked at."""
    try:
        known = os.stat(path)
    except OSError:
        return False
    needed = stat.S_IXOTH if stat.S_ISDIR(known.st_mode) else stat.S_IROTH
    if known.st_uid == account.uid:
        needed <<= 6
    elif known.st_gid == account.gid:
        needed <<= 3
    return bool(known.st_mode & needed)
