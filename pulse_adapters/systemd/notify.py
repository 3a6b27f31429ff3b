"""Speaks with the systemd that started the daemon (sd_notify, JOURNAL_STREAM), without a library."""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field

from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.threads import start_thread

_EXTENSION = "EXTEND_TIMEOUT_USEC=60000000"
"""For how much longer a start may take after each sign of progress; without one the unit's TimeoutStartSec holds."""
_ALIVE = "WATCHDOG=1"
_REPEATED = {_EXTENSION, _ALIVE}
"""What waits once at most for a full queue."""
_PATIENCE = 1.0  # seconds in which a full queue may take a message; then it is offered again
_MOST_LATE = 100
"""Messages that wait for a full queue; of more the oldest are dropped."""


def is_journal(descriptor: int, environ: Mapping[str, str]) -> bool:
    """Whether what is written to this descriptor goes into the journal: a child may have the variable and another file."""
    with suppress(OSError):
        found = os.fstat(descriptor)
        return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
    return False


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends to the notify socket; does nothing without one. No method raises, or waits for a manager that does not read.

    address: a path, or `@name` for an abstract socket, or empty; watchdog_us: 0 without a watchdog.
    """

    address: str = ""
    watchdog_us: int = 0
    _late: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LATE), init=False, compare=False)
    """What the manager's full queue has not taken yet; a thread sends it, in order."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, compare=False)

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str] = os.environ) -> "Notifier":
        """Take the manager's variables out of the environment, so that child processes can't notify in our name."""
        address = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        pid = environ.pop("WATCHDOG_PID", "")
        ours = pid in ("", str(os.getpid()))
        known = address if address.startswith(("/", "@")) else ""
        return cls(known, int(microseconds) if ours and microseconds.isdecimal() else 0)

    def watchdog_seconds(self) -> float | None:
        """Within how many seconds `watchdog` must be called again, or None; half of it is a good interval."""
        return self.watchdog_us / 1_000_000 if self.watchdog_us and self.address else None

    def extend_timeout(self) -> None:
        """Still starting, and getting on: folding a long log may take longer than the unit allows a start."""
        self._send(_EXTENSION)

    def ready(self) -> None:
        """Started, or done with a reload."""
        self._send("READY=1")

    def reloading(self) -> None:
        """About to read the settings again; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Draining."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """Alive; call it only after real progress."""
        self._send(_ALIVE)

    def _send(self, message: str) -> None:
        """Send it, or have a thread send it once the queue takes it: any user may fill the queue, and a watchdog that
        is not told in time ends the daemon."""
        with self._lock:
            if not self._late:
                with suppress(BlockingIOError):
                    return self._write(message, 0.0)
            if message in _REPEATED and message in self._late:
                return None
            self._late.append(message)
            if len(self._late) == 1:
                try:
                    start_thread(self._write_late, "service manager")
                except BlockingIOError:  # it is told with the next message, or not
                    self._late.clear()
        return None

    def _write_late(self) -> None:
        while True:
            message = self._late[0]
            try:
                self._write(message, _PATIENCE)
            except TimeoutError:
                continue
            with self._lock:
                with suppress(ValueError):  # it was the oldest of too many
                    self._late.remove(message)
                if not self._late:
                    return

    def _write(self, message: str, patience: float) -> None:
        """Send it; raises BlockingIOError or TimeoutError if the queue is full for so many seconds."""
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address

        def write() -> None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.settimeout(patience)
                channel.sendto(message.encode(), address)

        try:
            # A watchdog that is not told ends the daemon, and there may be no descriptor left to tell it.
            SPARE.read(write)
        except (BlockingIOError, TimeoutError):
            raise
        except OSError:
            pass  # there is no manager any more
