"""Time, told twice."""

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.moment import Moment, iso, local_text

micros = st.integers(0, 10**17)


@given(micros, micros, micros, st.integers(0, 10**12))
def test_within_a_boot_the_wall_clock_means_nothing(then: int, now: int, mono: int, passed: int) -> None:
    assert Moment(now, "b", mono + passed).since(Moment(then, "b", mono)) == passed


@given(micros, micros, micros, micros)
def test_no_duration_is_negative(at: int, mono: int, then_at: int, then_mono: int) -> None:
    assert Moment(at, "b", mono).since(Moment(then_at, "b", then_mono)) >= 0
    assert Moment(at, "b", mono).since(Moment(then_at, "a", then_mono)) >= 0


@given(micros, micros, micros)
def test_across_boots_at_least_the_uptime_has_passed(at: int, then: int, mono: int) -> None:
    assert Moment(at, "b", mono).since(Moment(then, "a", 0)) >= mono


def test_moments_are_spelled_in_utc() -> None:
    assert iso(1_700_000_000_000_250) == "2023-11-14T22:13:20.000250Z"


def test_a_time_after_the_end_of_the_calendar_is_told_all_the_same() -> None:
    """One that an agent has given ended all that lists it."""
    assert iso((1 << 62) - 1) == "9999-12-30T00:00:00.000000Z"
    assert local_text((1 << 62) - 1).startswith("9999-12-")
