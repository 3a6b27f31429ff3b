"""Switches a child that root started to another user, irrevocably."""

import os


def become_user(uid: int, gid: int) -> None:
    """Switch to this user and only this group. Raises OSError: then the process must exit."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # A number that is none means "as before" to the kernel, which then says yes.
    if (os.getresuid(), os.getresgid(), os.getgroups()) != ((uid,) * 3, (gid,) * 3, []):
        raise OSError(f"it did not become user {uid} with group {gid}")
