"""Durations are written with a unit, and come back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.durations import UNITS, format_duration, parse_duration
from pulse_core.settings.groups import AS_WRITTEN
from pulse_core.settings.processes import RestartSettings


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("0s", 0), ("500ms", 500_000), ("1.5s", 1_500_000), (" 10m ", 600_000_000), ("7d", 604_800_000_000)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    "wrong", ["", "5", "s", "-1s", "1 s 2", "5 parsecs", None, True, 1.5, "9" * 400 + "s", "36501d"]
)
def test_what_is_no_duration_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"no duration|100 years"):
        parse_duration(wrong)


@given(st.integers(0, 10_000), st.sampled_from(["d", "h", "m", "s", "ms"]))
def test_whole_units_are_spelled_exactly(number: int, unit: str) -> None:
    assert parse_duration(format_duration(number * UNITS[unit])) == number * UNITS[unit]


def test_a_bare_number_is_microseconds_in_code_and_refused_in_a_file() -> None:
    assert RestartSettings.model_validate({"grace": 5}).grace == 5
    with pytest.raises(ValueError, match="has no unit"):
        RestartSettings.model_validate({"grace": 5}, context=dict(AS_WRITTEN))
    assert RestartSettings.model_validate({"grace": 0}, context=dict(AS_WRITTEN)).grace == 0
