"""Landlock: of the files only those on a list are left, and no network where the kernel knows that too."""

import os
import stat
import struct
from collections.abc import Iterable

from pulse_adapters.workers.syscalls import Memory, syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
TRUNCATE = 1 << 14
OF_FILES = WRITE_FILE | READ_FILE | TRUNCATE
READ = READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | TRUNCATE

_FILES = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many kinds of access to files each ABI knows; later ones know as many as the fifth."""
_TCP, _SCOPES = 0b11, 0b11
_TCP_SINCE, _SCOPES_SINCE = 4, 6


def abi() -> int | None:
    """The kernel's version of it; None if it has none, or it is switched off."""
    try:
        return syscall(_CREATE, 0, 0, _VERSION)
    except OSError:
        return None


def restrict(
    readable: Iterable[str], writable: Iterable[str], ruleset_abi: int, listable: Iterable[str] = ()
) -> None:
    """Leave this thread nothing else, for ever; `no_new_privs` must be set. Raises OSError.

    listable: beneath these, names alone may be read.
    """
    handled = (1 << _FILES[min(ruleset_abi, 5)]) - 1
    parts = [handled]
    if ruleset_abi >= _TCP_SINCE:
        parts.append(_TCP)
    if ruleset_abi >= _SCOPES_SINCE:
        parts.append(_SCOPES)
    attributes = Memory(struct.pack(f"={len(parts)}Q", *parts))
    ruleset = syscall(_CREATE, attributes.address, 8 * len(parts), 0)
    try:
        for path in readable:
            _grant(ruleset, path, READ & handled)
        for path in writable:
            _grant(ruleset, path, WRITE & handled)
        for path in listable:
            _grant(ruleset, path, READ_DIR)
        syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, access: int) -> None:
    """Allow this beneath a path; one that is not there needs no grant."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= OF_FILES
        beneath = Memory(struct.pack("=Qi", access, place))
        syscall(_ADD, ruleset, _PATH_BENEATH, beneath.address, 0)
    finally:
        os.close(place)
