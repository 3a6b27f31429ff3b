"""One formula for all waits before something is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.backoff import Backoff, Restarts


def test_each_failure_doubles_the_wait_until_it_is_longest() -> None:
    assert [Backoff(0.5, 3.0).after(failures) for failures in (1, 2, 3, 4, 5)] == [0.5, 1, 2, 3, 3]
    assert [Backoff(1, 100, factor=3).after(failures) for failures in (1, 2, 3)] == [1, 3, 9]


def test_before_the_first_failure_there_is_no_wait_to_ask_for() -> None:
    with pytest.raises(ValueError, match="first failure"):
        Backoff(1, 2).after(0)


@given(st.integers(0, 10**9), st.integers(0, 10**12), st.integers(1, 10**6))
def test_microseconds_stay_whole_numbers_and_never_shrink(first: int, longest: int, failures: int) -> None:
    backoff = Backoff(first, longest)
    assert isinstance(backoff.after(failures), int)
    assert backoff.after(failures) <= backoff.after(failures + 1) <= longest


@given(st.floats(0.001, 1e6), st.integers(1, 10**6), st.floats(0, 1))
def test_jitter_only_adds_and_no_more_than_its_part(first: float, failures: int, chance: float) -> None:
    backoff = Backoff(first, 300.0, jitter=0.25)
    assert backoff.after(failures) <= backoff.jittered(failures, chance) <= backoff.after(failures) * 1.25


def test_what_ends_again_and_again_is_started_ever_later() -> None:
    restarts = Restarts(Backoff(1.0, 5.0), healthy=60.0)
    now, waits = 100.0, []
    for _ in range(4):
        restarts.started(now)
        waits.append(restarts.ended(now + 1))
        now = restarts.due
    assert waits == [1, 2, 4, 5]
    assert restarts.count == restarts.ends == 4


def test_a_healthy_life_ends_the_growing_once() -> None:
    restarts = Restarts(Backoff(1.0, 300.0), healthy=60.0)
    restarts.started(0.0)
    assert restarts.ended(60.0) == 1
    assert restarts.failed(61.0) == 2
    restarts.started(63.0)
    assert restarts.ended(124.0) == 1
    # A start that fails long after the last healthy life is no healthy life.
    assert [restarts.failed(1_000.0 * number) for number in (1, 2, 3)] == [2, 4, 8]
