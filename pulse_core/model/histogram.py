"""How durations are distributed, in bounded memory however many there are."""

from bisect import bisect_left
from collections.abc import Sequence

from pulse_core.model.home_status import DurationsStatus

BOUNDS_US = (500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000)


class DurationHistogram:
    """Counts durations by the first of its bounds that they do not exceed; the last count is of longer ones."""

    def __init__(self, bounds_us: Sequence[int] = BOUNDS_US) -> None:
        self.bounds_us = bounds_us
        self.counts = [0] * (len(bounds_us) + 1)
        self.sum_us = 0

    def add(self, took_us: int) -> None:
        """Count one more."""
        self.counts[bisect_left(self.bounds_us, took_us)] += 1
        self.sum_us += took_us

    def spelled(self) -> DurationsStatus:
        """As JSON values."""
        return {
            "bounds_ms": [bound / 1000 for bound in self.bounds_us],
            "counts": list(self.counts),
            "sum_ms": self.sum_us / 1000,
        }
