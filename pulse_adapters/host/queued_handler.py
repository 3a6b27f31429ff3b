"""What the daemon says is written by a thread of its own: a disk, a pipe or a terminal may take nothing for hours."""

import atexit
import logging
import os
import queue
import time
from contextlib import suppress

from pulse_adapters.workers.threads import start_thread

WAITING = 10_000
"""Most records that wait to be written; what comes then is left out."""
LAST = 2.0
"""Seconds for which the end waits until the last words are written."""


class DescriptorHandler(logging.Handler):
    """Writes lines to a descriptor, and holds no lock meanwhile: the end of the program would wait for it."""

    def __init__(self, descriptor: int, formatter: logging.Formatter) -> None:
        super().__init__()
        self.descriptor, self.formatter = descriptor, formatter

    def createLock(self) -> None:
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        self.emit(record)  # the library's own one wants a lock from Python 3.13 on
        return True

    def emit(self, record: logging.LogRecord) -> None:
        rest = f"{self.format(record)}\n".encode(errors="backslashreplace")
        with suppress(OSError):  # who read it is gone
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]


class QueuedHandler(logging.Handler):
    """Hands records over to the thread that has another handler write them; who speaks waits for nothing."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self.target = target
        self.waiting: queue.Queue[logging.LogRecord] = queue.Queue(WAITING)
        start_thread(self._write, "log")
        atexit.register(self._drain)

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):
            self.waiting.put_nowait(record)

    def _write(self) -> None:
        while True:
            record = self.waiting.get()
            try:
                self.target.handle(record)
            except Exception:  # noqa: BLE001 - one that can't be spelled must not silence all that come after it
                self.handleError(record)
            self.waiting.task_done()

    def _drain(self) -> None:
        until = time.monotonic() + LAST
        while self.waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.005)
