"""Sizes as people write them."""

import pytest

from pulse_core.settings.groups import size_number
from pulse_core.settings.processes import UNLIMITED, limit_number


@pytest.mark.parametrize(
    ("text", "number"), [("", 0), ("0", 0), ("512", 512), ("1K", 1024), ("2G", 2 << 30), ("3T", 3 << 40)]
)
def test_a_size_is_a_number_and_a_unit(text: str, number: int) -> None:
    assert size_number(text) == number
    assert limit_number(text) == number


@pytest.mark.parametrize("text", ["2 G", "-1", "1.5G", "2g", "G", "unlimited", "1KB", "9" * 19])
def test_what_is_no_size_is_told_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match="write a number, or one with a unit, as '2G'"):
        size_number(text)


def test_a_limit_may_be_none() -> None:
    assert limit_number("unlimited") == UNLIMITED
