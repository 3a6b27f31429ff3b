"""Values some at a time."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.batches import in_batches


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([5], [1]),
        ([5] * 250, [100, 100, 50]),
        ([2_000] * 30, [12, 12, 6]),
        ([9, 30_000, 9], [1, 1, 1]),
    ],
)
def test_a_batch_has_no_more_values_and_no_larger_ones_than_it_may(
    sizes: list[int], parts: list[int]
) -> None:
    batches = list(in_batches(["x" * size for size in sizes], 100, len, 24_000))
    assert [len(one) for one in batches] == parts


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_batches_are_the_values_in_their_order(values: list[int], most: int) -> None:
    for batches in (list(in_batches(values, most)), list(in_batches(values, most, int, 12))):
        assert [value for batch in batches for value in batch] == values
        assert all(len(batch) <= most for batch in batches)


def test_values_are_taken_as_they_are_needed() -> None:
    assert next(in_batches(count(), 3)) == [0, 1, 2]
    assert next(in_batches(count(5), 3, int, 100)) == [5, 6, 7]
