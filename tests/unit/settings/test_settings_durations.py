"""Durations are written with a unit, and come back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.durations import UNITS, duration_text, format_duration, parse_duration
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


def test_minutes_of_more_than_an_hour_are_spelled_with_hours() -> None:
    spelled = [format_duration(minutes * UNITS["m"]) for minutes in (59, 60, 90, 1_435, 1_440, 1_445)]
    assert spelled == ["59m", "1h", "1h30m", "23h55m", "1d", "24h5m"]


def test_a_bare_number_is_microseconds_in_code_and_refused_in_a_file() -> None:
    assert RestartSettings.model_validate({"grace": 5}).grace == 5
    with pytest.raises(ValueError, match="has no unit"):
        RestartSettings.model_validate({"grace": 5}, context=dict(AS_WRITTEN))
    assert RestartSettings.model_validate({"grace": 0}, context=dict(AS_WRITTEN)).grace == 0


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [(0, "0 s"), (340, "340 us"), (2_400, "2.4 ms"), (1_234_567, "1.2 s"), (90_000_000, "90 s"), (119_000_000, "119 s"),
     (60_000_000, "1 min"), (630_000_000, "10.5 min"), (18_000_000_000, "5 h"), (86_400_000_000, "1 day"),
     (172_800_000_000, "2 days")],
)  # fmt: skip
def test_a_duration_for_people_has_about_three_digits(microseconds: int, words: str) -> None:
    assert duration_text(microseconds) == words
