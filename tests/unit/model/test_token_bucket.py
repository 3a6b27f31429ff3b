"""What may be spent at once, and comes back with time."""

from pulse_core.model.token_bucket import TokenBucket


def test_what_is_spent_comes_back_with_time_and_never_more_than_all() -> None:
    budget = TokenBucket(most=100, each_second=10)
    assert budget.room(0.0) == 100
    budget.spend(250)
    assert budget.room(0.0) == -150
    assert budget.room(20.0) == 50
    assert budget.room(10.0) == 50  # a clock that is set back gives nothing
    assert budget.room(1_000.0) == 100
