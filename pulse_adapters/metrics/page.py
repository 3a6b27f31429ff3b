"""The metrics page: made on request, at most once a second, however many requests come."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pulse_core.model.errors import PulseError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from pulse_adapters.metrics.families import MetricsInput

FRESH_S = 1.0
TEXT = "text/plain"
PROMETHEUS = "prometheus_client", "prometheus-client", "metrics"
"""The package that makes the page, where it comes from, and the extra that installs it."""


def require_package(package: str, name: str, extra: str) -> None:
    """Raise PulseError if an optional package is missing; it may be installed while this runs."""
    with suppress(ModuleNotFoundError):
        if find_spec(package):
            return
    raise PulseError(f"the package {name} is not installed; install it with: pip install 'upulse[{extra}]'")


class Page:
    """Samples Pulse and caches the sample for a second. look: takes a sample, which may take long; it is never
    called concurrently, and must not raise. What makes the page is imported when it is first served."""

    def __init__(self, look: "Callable[[], MetricsInput]", version: str, fresh: float = FRESH_S) -> None:
        self._look, self._version, self._fresh = look, version, fresh
        self._lock = threading.Lock()
        self._seen: MetricsInput | None = None
        self._at = 0.0

    def collect(self) -> "Iterator[Metric]":
        """The families as of now; all that is asked of a registry."""
        from pulse_adapters.metrics.families import families

        with self._lock:
            if self._seen is None or time.monotonic() - self._at >= self._fresh:
                self._seen = self._look()
                self._at = time.monotonic()
            return families(self._seen, self._version)

    def served(self, accept: str = TEXT) -> tuple[bytes, str]:
        """The page in the format that an Accept header requests, and its type. Raises PulseError without the package."""
        require_package(*PROMETHEUS)
        from prometheus_client.exposition import choose_encoder

        encode: Any
        encode, kind = choose_encoder(accept)
        return encode(self), kind

    def farewell(self) -> bool:
        """From now on report that there is no daemon, and no state; whether anything else was ever reported."""
        with self._lock:
            before, self._at = self._seen, float("inf")
            self._seen = before and before._replace(answers=False, standing={}, sizes={})
            return before is not None
