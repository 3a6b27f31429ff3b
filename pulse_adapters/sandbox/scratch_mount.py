"""A file system in memory over a process's scratch folder: as large as it may be, seen by nobody else, gone with it."""

from pulse_adapters.workers.syscall_numbers import number_of
from pulse_adapters.workers.syscalls import Memory, syscall

_NEW_MOUNTS = 0x20000
_RECURSIVE, _FOLLOWER = 0x4000, 0x80000
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8


def mount_scratch(folder: str, user: tuple[int, int], most_bytes: int, most_files: int) -> None:
    """Give this process a view of its own of all mounts, and mount it there for this uid and gid. Raises OSError.

    The view follows the machine's: what is unmounted there is not held here.
    """
    syscall(number_of("unshare"), _NEW_MOUNTS)
    _mount("none", "/", "", _RECURSIVE | _FOLLOWER, "")
    uid, gid = user
    options = f"size={most_bytes},nr_inodes={most_files + 1},mode=0700,uid={uid},gid={gid}"
    _mount("pulse-scratch", folder, "tmpfs", _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS, options)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [Memory(word.encode() + b"\0") for word in (source, target, kind, options)]
    first, second, third, last = (word.address for word in words)
    syscall(number_of("mount"), first, second, third, flags, last)
