"""Switches a child that root started to another user, irrevocably."""

import os
from contextlib import suppress


def become_user(uid: int, gid: int) -> None:
    """Switch to this user and only this group. Raises OSError: then the process must exit."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # A number that is none means "as before" to the kernel, which then says yes.
    if (os.getresuid(), os.getresgid(), os.getgroups()) != ((uid,) * 3, (gid,) * 3, []):
        raise OSError(f"it did not become user {uid} with group {gid}")


def become_unwaited(uid: int) -> None:
    """Switch to this user as the last step before a forked child executes its program, for which nobody waits from then on.

    As soon as the child is another user's, that one may stop it (SIGSTOP), and with it whoever has forked it and waits until
    it executes. Python waits at a pipe: so all but the standard three are closed first. What fails after that is an exit.
    """
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):  # the directory's own descriptor is gone by now
                os.close(int(name))
    os.setuid(uid)
