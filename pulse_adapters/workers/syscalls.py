"""System calls for which Python has no function."""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_POPULATE_WRITE = 23
_SET_DUMPABLE = 4


def syscall(number: int, *arguments: int) -> int:
    """Make a system call. Raises OSError."""
    result = int(_LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments)))
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def prctl(option: int, *arguments: int) -> None:
    """`prctl(2)`. Raises OSError."""
    four = (*arguments, 0, 0, 0, 0)[:4]
    if _LIBC.prctl(ctypes.c_int(option), *(ctypes.c_ulong(argument) for argument in four)) < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))


def act_on_files_as(uid: int, gid: int) -> None:
    """Have this thread alone open files as this user and group, if it may (`setfsuid(2)`)."""
    if uid:
        _LIBC.setfsgid(ctypes.c_uint(gid))
        _LIBC.setfsuid(ctypes.c_uint(uid))
    else:  # root must be root again before it may change its group
        _LIBC.setfsuid(ctypes.c_uint(uid))
        _LIBC.setfsgid(ctypes.c_uint(gid))
    prctl(
        _SET_DUMPABLE, 1
    )  # which the kernel takes away, so that this process would be shown to less than before


def populate(address: int, length: int) -> None:
    """Have the kernel make these pages ready to be written. Raises OSError: EFAULT where a write would end the process.

    Linux 5.14 and later can.
    """
    if _LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_int(_POPULATE_WRITE)):
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))


def file_system_magic(path: str) -> int:
    """The number by which the kernel knows the type of the file system that holds this path. Raises OSError."""
    answer = (ctypes.c_long * 32)()
    if _LIBC.statfs(os.fsencode(path), ctypes.byref(answer)):
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno), path)
    return int(answer[0])


class Memory:
    """Bytes at an address that the kernel can read, for as long as this object lives."""

    def __init__(self, content: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(content, len(content))
        self.address = ctypes.addressof(self._buffer)
