"""The present moment."""

from typing import Protocol

from pulse_core.model.moment import Moment


class Clock(Protocol):
    """Returns the present moment. Waiting is the event loop's business, so virtual time needs only another loop."""

    def now(self) -> Moment:
        """The present moment; `mono` never goes back within a boot, `at` may jump either way."""
