"""An amount, as of bytes or seconds, that may be spent, and comes back with time."""

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """At most `most` bytes at once, and `each_second` in the long run."""

    most: float
    each_second: float

    def __post_init__(self) -> None:
        self._room, self._at = self.most, 0.0

    def room(self, now: float) -> float:
        """What may be spent; now: seconds of any clock that is never set back."""
        self._room = min(self.most, self._room + max(0.0, now - self._at) * self.each_second)
        self._at = now
        return self._room

    def spend(self, size: float) -> None:
        """Take so much, also more than there is room for: then it takes longer to be had again."""
        self._room -= size
