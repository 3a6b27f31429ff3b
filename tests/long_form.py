"""How much of a test is done: a sample in `make check`, all of it in `make campaign`."""

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

in_campaign = pytest.mark.skipif("PULSE_CAMPAIGN" not in os.environ, reason="`make campaign` does it")
"""Of a test that has no short form, and whose subject others have in the check."""


def sample(short: T, long: T) -> T:
    """The short form, or the long one where `PULSE_CAMPAIGN` is set."""
    return long if "PULSE_CAMPAIGN" in os.environ else short


def sampled(rows: Iterable[T], every: int) -> list[T]:
    """Every so many-th case of a table, the first one first, or all of them where `PULSE_CAMPAIGN` is set."""
    return [*rows][:: sample(every, 1)]
