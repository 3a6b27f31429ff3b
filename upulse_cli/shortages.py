"""Tells whether memory or threads ran out, in whichever words: Python, the system and the loader each have their own."""

import errno
import os

NO_MEMORY = os.EX_OSERR
NO_MEMORY_WORDS = (
    "memory ran out, so this was not done, or not whole; allow it more (ulimit -v, MemoryMax=), and try again"
)
NO_THREAD_WORDS = (
    "no more threads can be had, so this was not done, or not whole: a limit of processes is reached, or memory is"
    " short; end some, or allow more (ulimit -u, TasksMax=), and try again"
)


def is_memory_shortage(error: BaseException | None) -> bool:
    """Whether it came of too little memory, at first or at last."""
    match error:
        case None:
            return False
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return True
        case ImportError() if "failed to map segment" in str(error) or os.strerror(errno.ENOMEM) in str(
            error
        ):
            return True  # the loader has no numbers
        case BaseExceptionGroup(exceptions=inner) if any(map(is_memory_shortage, inner)):
            return True
    return is_memory_shortage(error.__cause__ or error.__context__)


def is_thread_shortage(error: BaseException | None) -> bool:
    """Whether it came of a thread that could not begin, at first or at last: Python has no type for that."""
    if error is None or (isinstance(error, RuntimeError) and str(error) == "can't start new thread"):
        return error is not None
    return is_thread_shortage(error.__cause__ or error.__context__)
