"""What the kernel shows of a process to its user alone: its environment, open files, memory and folder.

Root is shown that of every process by CAP_SYS_PTRACE, which containers leave out. What such a root asks as that user it is
shown all the same, but of who has become that user without executing anything since.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from pulse_adapters.workers.syscalls import act_on_files_as

_CAP_SYS_PTRACE = 1 << 19


@contextmanager
def as_its_user(pid: int | str) -> Iterator[None]:
    """Meanwhile this thread, where it is root's and not shown all, opens files as the user of this process."""
    uid = gid = 0
    if is_shown_less():
        with suppress(OSError):  # it is gone
            found = os.stat(f"/proc/{pid}")
            uid, gid = found.st_uid, found.st_gid
    if uid == 0:
        yield
        return
    own = os.getegid()
    act_on_files_as(uid, gid)
    try:
        yield
    finally:
        act_on_files_as(0, own)


@cache
def is_shown_less() -> bool:
    """Whether this is root's, without the right to look into the processes of others."""
    if os.geteuid() != 0:
        return False
    with open("/proc/self/status", "rb") as status:
        rights = next((line for line in status if line.startswith(b"CapEff:")), b": ffffffffffffffff")
    return not int(rights.split()[1], 16) & _CAP_SYS_PTRACE
