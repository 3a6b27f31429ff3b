"""Removes the user of a home's engine with all that it has: processes, files, its group, and the settings file."""

import grp
import os
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

PATIENCE = 10.0
EVERYBODYS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
"""Where any user may leave files."""


def has_account(home: Path) -> bool:
    """Whether a user was recorded for this home."""
    return recorded_name(home) is not None


def remove_account(home: Path, base: Path = BASE) -> Iterator[str]:
    """Remove what this home's engine had on the machine, as root; what was done, in sentences. Raises NoAccount.

    A user that the settings name stays. That which homes shared before goes with the last of them.
    """
    name = recorded_name(home)
    account = find_account(name) if name else None
    if account:
        _end_processes(account)
    if not remove_tree(laid_out := layout_path(home, base)):
        raise NoAccount(f"{laid_out} can't be emptied; try again")
    remove_left_over()
    with suppress(OSError):
        base.rmdir()  # unless another home uses it
    if name:
        _remove(name, account)
        yield f"Removed the user {name}."
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
                f"{len(left)} processes of the user {account.name} don't end, as {left[0]}; try again"
            )
        run_as_user(("sh", "-c", "kill -9 -1"), account.ids, None, 1.0)


def _remove(name: str, account: Account | None) -> None:
    if account:
        find = ("find", *EVERYBODYS, "-xdev", "-mindepth", "1", "-user", str(account.uid), "-delete")
        for command in (find, ("ipcrm", "--all")):
            run_as_user(command, account.ids, None, PATIENCE)
        run_tool("userdel", name)
    with suppress(KeyError):
        grp.getgrnam(name)  # whatever userdel is told to do with groups
        run_tool("groupdel", name)
    remove_record(name)
