"""How glibc's allocator keeps memory that is free."""

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
_M_ARENA_MAX = -8


def keep_little_free() -> None:
    """Have each large block returned to the kernel as soon as it is free, and all threads share what is free of the others.

    By default the allocator moves its bound up to the largest block that was freed: after a crowd of callers with a mebibyte
    each, a process keeps a hundred of them for good. And each thread has an arena of its own,
    which is of no use to threads that take turns with the interpreter.
    """
    with suppress(AttributeError, OSError):  # another C library than glibc
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_M_ARENA_MAX, 1)
