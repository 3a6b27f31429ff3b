"""Periodic tasks of the metrics process, each in its own thread; a failure is reported once."""

import threading
import time
from collections.abc import Callable

from pulse_core.model.backoff import Backoff
from pulse_core.model.errors import PulseError


class PeriodicTask:
    """Work that is done at intervals. work: returns the problem, or empty; say: called when that changes.

    A failure is retried at growing intervals, but at least every `longest` seconds.
    """

    def __init__(
        self, work: Callable[[], str], every: float, say: Callable[[str], None], longest: float = 300.0
    ) -> None:
        self._work, self._every, self._say, self._longest = work, every, say, max(longest, every)
        self._said = ""
        self._failures = 0

    def once(self) -> float:
        """Do it, report a change, and return the seconds until the next time."""
        why = self._tried()
        if why and why != self._said:
            self._say(why)
        self._said, self._failures = why, self._failures + 1 if why else 0
        return Backoff(self._every, self._longest).after(self._failures + 1)

    def _tried(self) -> str:
        try:
            return self._work()
        except PulseError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename or 'the system'}: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the other chores go on and it is tried again
            return f"{type(error).__name__}: {error}"

    def begin(self, name: str) -> None:
        """Do it for ever in a daemon thread."""
        threading.Thread(target=self._for_ever, name=name, daemon=True).start()

    def _for_ever(self) -> None:
        while True:
            time.sleep(self.once())
