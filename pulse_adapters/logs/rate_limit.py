"""How many lines a minute are told: in no minute, whenever it begins, more than the limit."""

from collections import deque

MINUTE = 60.0


class RateLimit:
    """Grants up to `limit` lines in any sixty seconds; time is told in seconds and never goes back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._spent: deque[tuple[float, int]] = deque()
        self._sum = 0

    def take(self, lines: int, now: float) -> int:
        """How many of these lines may be told now."""
        while self._spent and now - self._spent[0][0] >= MINUTE:
            self._sum -= self._spent.popleft()[1]
        granted = min(lines, self.limit - self._sum)
        if granted:
            self._spent.append((now, granted))
            self._sum += granted
        return granted
