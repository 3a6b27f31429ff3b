"""Threads, where a system may give none: of a limit of processes threads count, too, and others may have used it up."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
NO_THREAD = "no more threads can be had: a limit of processes is reached, or memory is short"


class ThreadShortage(TimeoutError):
    """No thread can be had to ask in, which says nothing about what was to be asked."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.errno = errno.EAGAIN


def start_thread(work: Callable[[], object], name: str) -> None:
    """Begin a thread that nobody waits for. Raises BlockingIOError if the system gives none."""
    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError as error:
        raise BlockingIOError(errno.EAGAIN, NO_THREAD) from error


class Pool(ThreadPoolExecutor):
    """A pool of threads; begun: all of them at once, so that later work needs none that can't be had.

    Raises BlockingIOError where the system gives no thread: the daemon takes that for a fault of what it wanted to do,
    and ThreadPoolExecutor's RuntimeError for one of its own, which ends it.
    """

    def __init__(self, threads: int, name: str, begun: bool = False) -> None:
        super().__init__(threads, name)
        if begun:
            self.begin()

    def begin(self) -> None:
        """Begin all threads now."""
        are_begun = threading.Event()
        try:
            for _ in range(self._max_workers):
                self.submit(are_begun.wait)
        finally:
            are_begun.set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """As its base class does it."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            raise BlockingIOError(errno.EAGAIN, NO_THREAD) from error
