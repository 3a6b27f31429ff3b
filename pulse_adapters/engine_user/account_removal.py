"""Removes the user of a home's engine with all that it has: processes, files, its group, and the settings file."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pulse_adapters.engine_user.account import Account, find_account, run_tool
from pulse_adapters.engine_user.account_record import SHARED, NoAccount, is_ours, recorded_name, remove_record
from pulse_adapters.engine_user.layout import BASE, layout_path
from pulse_adapters.sandbox.scratch_folder import remove_left_over
from pulse_adapters.workers.process_tree import live_process_table, of_user
from pulse_adapters.workers.untrusted_paths import remove_tree, run_as_user
from pulse_adapters.workers.users import find_group
from pulse_core.model.text import count

PATIENCE, PATIENCE_OF_ROOT = 10.0, 60.0
EVERYBODYS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
"""Where any user may leave files."""
_FORGETS_KEYS = """
import ctypes, os, platform, sys
keyctl, libc = {"x86_64": 250, "aarch64": 219}[platform.machine()], ctypes.CDLL(None)
CLEAR, INVALIDATE, PERSISTENT, OF_USER, OF_SESSIONS = 7, 21, 22, -4, -5
def call(*numbers):
    return libc.syscall(*map(ctypes.c_long, (keyctl, *numbers)))
uid, gid = map(int, sys.argv[1:])
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
call(CLEAR, call(PERSISTENT, -1, OF_USER))
call(CLEAR, OF_SESSIONS)
call(CLEAR, OF_USER)
for key in map(str.split, open("/proc/keys")):
    if key[5] == str(uid):
        call(INVALIDATE, int(key[0], 16))
"""
"""Becomes a user, who may not be able to read Python, and has the kernel forget the keys that its next user could read."""


def has_leftovers(home: Path, base: Path = BASE) -> bool:
    """Whether a user was recorded for this home, or code lies there that one could read."""
    return recorded_name(home) is not None or os.path.lexists(layout_path(home, base))


def remove_account(home: Path, base: Path = BASE) -> Iterator[str]:
    """Remove what this home's engine had on the machine, as root; what was done, in sentences. Raises NoAccount.

    A user that the settings name stays. That which homes shared before goes with the last of them.
    """
    name, laid_out = recorded_name(home), layout_path(home, base)
    account = find_account(name) if name else None
    if account:
        _end_processes(account)
    is_laid_out = os.path.lexists(laid_out)
    if not remove_tree(laid_out):
        raise NoAccount(f"{laid_out} can't be emptied; try again")
    remove_left_over()
    with suppress(OSError):
        base.rmdir()  # unless another home uses it
    if name:
        _remove(name, account)
        yield f"Removed the user {name}."
    elif is_laid_out:
        yield f"Removed {laid_out}."
    shared = find_account(SHARED)
    if shared and is_ours(SHARED) and not base.exists():
        _end_processes(shared)
        _remove(SHARED, shared)
        yield f"Removed the user {SHARED}, which no home uses any more."


def _end_processes(account: Account) -> None:
    """Kill all that the user runs, at once: a signal to all whom that user may signal, so that nothing can run ahead."""
    if os.geteuid() or not account.uid:
        raise NoAccount(
            f"the processes of {account.name!r} are not ended: only root ends those of another user"
        )
    until = time.monotonic() + PATIENCE
    while left := list(of_user(account.uid)(live_process_table())):
        if time.monotonic() > until:
            raise NoAccount(
                f"{count(len(left), 'process')} of the user {account.name} did not end, as {left[0]}; try again"
            )
        run_as_user(("sh", "-c", "kill -9 -1"), account.ids, None, 1.0)


def _delete_files(account: Account) -> None:
    """Delete what the user has where any user may leave files. Raises NoAccount if something is left there."""
    find = ("find", *EVERYBODYS, "-xdev", "-mindepth", "1", "-user", str(account.uid))
    # Its own folders may be closed to it, and are opened before `find` looks into them.
    opens = (*find, "-type", "d", "!", "-perm", "-u=rwx", "-exec", "chmod", "u+rwx", "{}", ";")
    for command in (opens, (*find, "-delete")):
        run_as_user(command, account.ids, None, PATIENCE)
    try:
        left = subprocess.run(
            (*find, "-print", "-quit"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE_OF_ROOT,
            check=False,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise NoAccount(f"what the user {account.name} has left can't be looked for: {error}") from error
    if left:
        path = os.fsdecode(left.rstrip(b"\n"))
        raise NoAccount(
            f"the user {account.name} has left {path!r}, which it can't delete, so it is not removed; delete that, and "
            "try again"
        )


def _remove(name: str, account: Account | None) -> None:
    if account:
        _delete_files(account)
        run_as_user(("ipcrm", "--all"), account.ids, None, PATIENCE)
        with suppress(OSError, subprocess.SubprocessError):  # a machine without keys
            forget = (sys.executable, "-I", "-S", "-c", _FORGETS_KEYS, *map(str, account.ids))
            subprocess.run(forget, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        run_tool("userdel", name)
    if find_group(name):  # whatever userdel is told to do with groups
        run_tool("groupdel", name)
    remove_record(name)
