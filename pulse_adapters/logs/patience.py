"""Searches with a user's regular expressions, each cut off before it takes for ever: `re` itself knows no end."""

import re
import signal
import time
from collections.abc import Callable
from types import FrameType

LIMIT = 0.05
"""Seconds of CPU time after which a search is given up, at the latest after twice as long."""
STRIKES = 3
REST = 60.0
"""Seconds for which an expression is not tried any more that took too long so often in such a time."""


class TooLong(Exception):
    """Raised by the timer, inside of `re`, which looks for signals every 4,096 steps."""


class Patience:
    """One timer for all searches: whoever is still at the same one when it comes round again takes too long.

    given_up: whether that has happened since somebody last asked.
    """

    def __init__(self) -> None:
        self.search_number = 0
        self.searching = self.given_up = False
        self._seen = 0

    def arm(self) -> None:
        """Start the timer, in a process's main thread, of which it takes SIGVTALRM; before, nothing is cut off."""
        signal.signal(signal.SIGVTALRM, self._ring)
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT, LIMIT)

    def disarm(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self.searching and self._seen == self.search_number:
            self.searching, self.given_up = False, True
            raise TooLong
        self._seen = self.search_number


class Expression:
    """A regular expression that is searched with patience, and left alone for a while where that does not help.

    unjudged: lines since it was last asked for that it took too long with, or was not tried on;
    now: tells seconds.
    """

    def __init__(self, text: str, patience: Patience, now: Callable[[], float] = time.monotonic) -> None:
        self.text, self.patience, self.now = text, patience, now
        self.unjudged = 0
        self._search = re.compile(text).search
        self._strikes: list[float] = []
        self._rests_until = 0.0

    def search(self, line: str) -> bool:
        """Whether it is found in the line; False, and one more unjudged, if that would take too long."""
        patience = self.patience
        if self._rests_until and self.now() < self._rests_until:
            self.unjudged += 1
            return False
        try:
            patience.search_number += 1
            patience.searching = True
            found = self._search(line) is not None
            patience.searching = False
        except TooLong:
            self._too_long()
            return False
        return found

    def _too_long(self) -> None:
        self.unjudged += 1
        now = self.now()
        self._strikes = [then for then in self._strikes if now - then < REST] + [now]
        if len(self._strikes) >= STRIKES:
            self._strikes.clear()
            self._rests_until = now + REST
