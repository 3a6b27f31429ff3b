"""Bounds how often actions whose policy is an author's choice are tried again: each attempt acts, and is recorded."""

from collections import deque

from pulse_core.model.moment import US_PER_SECOND, Moment

MINUTE = 60 * US_PER_SECOND


class RetryLimit:
    """When further attempts began within a minute."""

    def __init__(self) -> None:
        self._begun: deque[Moment] = deque()

    def wait_us(self, most: int, now: Moment) -> int:
        """Microseconds until one more may begin; 0 if it may now. most: in a minute."""
        while self._begun and now.since(self._begun[0]) >= MINUTE:
            self._begun.popleft()
        return MINUTE - now.since(self._begun[-most]) if len(self._begun) >= most else 0

    def add(self, now: Moment) -> None:
        """Count one that begins."""
        self._begun.append(now)
