"""Finds or creates the engine's user account, and tells whether that can read what its code needs."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pulse_core.model.errors import PulseError

NAME = "pulse-engine"
SYSUSERS = Path("/etc/sysusers.d")
_TOLD = "engine of Pulse"
_PATIENCE = 30.0
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


class NoAccount(PulseError):
    """The user that is meant can't be the engine's."""


def find_account(name: str) -> Account | None:
    """The user of this name, if there is one."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def engine_account(name: str | None) -> Account | None:
    """The engine's user: the one of this name, which must be there; or, if none is named, the usual one if it is there.

    None, too, for whoever is not root: nobody else can give a process another user. Raises NoAccount.
    """
    if os.geteuid() != 0:
        return None
    account = find_account(name or NAME)
    if account is None and name:
        raise NoAccount(f"there is no user {name!r} on this machine; make it with: useradd --system {name}")
    if account and 0 in account.ids:
        raise NoAccount(f"the user {account.name!r} is root, or of root's group; name a user without rights")
    return account


def create_account(name: str = NAME) -> Account:
    """The user of this name, made now if it is not there: without a home, a login, or other groups. Needs root."""
    if account := find_account(name):
        return account
    if shutil.which("systemd-sysusers"):
        _by_sysusers(name)
    else:
        _run(
            "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/", "--shell",
            "/usr/sbin/nologin", "--comment", _TOLD, name,
        )  # fmt: skip
    account = find_account(name)
    if account is None:
        raise NoAccount(
            f"the user {name!r} was made, but this machine does not know it; see: getent passwd {name}"
        )
    return account


def _by_sysusers(name: str) -> None:
    """By a file that stays: systemd makes the user again where /etc/passwd is begun anew."""
    file = SYSUSERS / f"{name}.conf"
    try:
        SYSUSERS.mkdir(exist_ok=True)
        file.write_text(f'# Written by upulse.\nu {name} - "{_TOLD}"\n')
        file.chmod(0o644)
    except OSError as error:
        raise NoAccount(f"{file} can't be written: {error.strerror}") from error
    try:
        _run("systemd-sysusers", str(file))
    except NoAccount:
        file.unlink(missing_ok=True)
        raise


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAccount(f"no user can be made: {argv[0]}: {error}") from error
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split()) or f"exit {done.returncode}"
        raise NoAccount(f"no user can be made: {argv[0]}: {words}")


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
    for place in (Path(os.path.abspath(path)), Path(path).resolve()):
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
