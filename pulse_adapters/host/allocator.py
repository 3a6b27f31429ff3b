"""How glibc's allocator keeps memory that is free."""

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_blocks() -> None:
    """Have each large block returned to the kernel as soon as it is free.

    By default the allocator moves its bound up to the largest block that was freed: after a crowd of callers with a mebibyte
    each, a process keeps a hundred of them for good.
    """
    with suppress(AttributeError, OSError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
