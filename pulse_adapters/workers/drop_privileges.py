"""How a child that root started takes on another user, with no way back."""

import os


def become_user(uid: int, gid: int) -> None:
    """Be this user and nobody else, in no group but this one. Raises OSError: then it must do nothing more."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # A number that is none means "as before" to the kernel, which then says yes.
    if (os.getresuid(), os.getresgid(), os.getgroups()) != ((uid,) * 3, (gid,) * 3, []):
        raise OSError(f"it did not become user {uid} with group {gid}")
