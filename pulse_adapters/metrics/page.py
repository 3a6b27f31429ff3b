"""The metrics page: made on request, at most once a second, however many requests come."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pulse_adapters.metrics.families import MetricsInput, families

FRESH_S = 1.0
TEXT = "text/plain"


class ServedPage(NamedTuple):
    """A page and the type that its header says."""

    body: bytes
    kind: str


class Page(Collector):
    """Samples Pulse and caches the sample for a second. look: takes a sample, which may take long; it is never
    called concurrently, and must not raise."""

    def __init__(self, look: Callable[[], MetricsInput], version: str, fresh: float = FRESH_S) -> None:
        self._look, self._version, self._fresh = look, version, fresh
        self._lock = threading.Lock()
        self._seen: MetricsInput | None = None
        self._at = 0.0

    def collect(self) -> Iterator[Metric]:
        """The families as of now."""
        return families(self._recent(), self._version)

    def _recent(self) -> MetricsInput:
        with self._lock:
            if self._seen is None or time.monotonic() - self._at >= self._fresh:
                self._seen = self._look()
                self._at = time.monotonic()
            return self._seen

    def served(self, accept: str = TEXT) -> ServedPage:
        """The page in the format that an Accept header requests."""
        encode, kind = choose_encoder(accept)
        return ServedPage(encode(self), kind)

    def farewell(self) -> None:
        """From now on report that there is no daemon, and no state."""
        with self._lock:
            self._seen, self._at = MetricsInput(False, {}), float("inf")
