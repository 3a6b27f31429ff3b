"""How much of a test is done: a sample in `make check`, all of it in `make campaign`."""

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

in_campaign = pytest.mark.skipif("PULSE_CAMPAIGN" not in os.environ, reason="`make campaign` does it")
"""Of a test that has no short form, and whose subject others have in the check."""


is_sampled = "PULSE_SAMPLE" in os.environ and "PULSE_CAMPAIGN" not in os.environ
"""Whether this is `make check` or `make test`, and not who runs a test by hand, or the campaign."""


def sample(short: T, long: T) -> T:
    """The short form, or the long one where `PULSE_CAMPAIGN` is set."""
    return long if "PULSE_CAMPAIGN" in os.environ else short


def sampled(rows: Iterable[T], every: int) -> list[T]:
    """A share of a table, one case of so many, and with each `PULSE_SAMPLE` another one.

    All of it where that is not set, as for who runs a test by hand, and in the campaign.
    """
    table = [*rows]
    if not is_sampled:
        return table
    return table[int(os.environ["PULSE_SAMPLE"]) % every :: every] or table[:1]
