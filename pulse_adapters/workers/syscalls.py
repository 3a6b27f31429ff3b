"""System calls for which Python has no function."""

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


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


class Memory:
    """Bytes at an address that the kernel can read, for as long as this object lives."""

    def __init__(self, content: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(content, len(content))
        self.address = ctypes.addressof(self._buffer)
