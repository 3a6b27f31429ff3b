"""How much of a test is done: a sample in `make check`, all of it in `make campaign`."""

import os
from typing import TypeVar

T = TypeVar("T")


def sample(short: T, long: T) -> T:
    """The short form, or the long one where `PULSE_CAMPAIGN` is set."""
    return long if "PULSE_CAMPAIGN" in os.environ else short
