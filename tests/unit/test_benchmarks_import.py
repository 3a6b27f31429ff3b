"""Benchmarks are run by hand: here they are at least read, so that a renamed part is noticed."""

from importlib import import_module

import pytest

from tests.benchmarks import bench_verify
from tests.benchmarks.__main__ import NAMES
from tests.benchmarks.table import Row, markdown, percentile, spread


@pytest.mark.parametrize("name", NAMES)
def test_each_benchmark_can_be_run(name: str) -> None:
    assert callable(import_module(f"tests.benchmarks.bench_{name}").run)


def test_verify_is_measured_with_its_indexes_beside_what_it_takes_without_them() -> None:
    (row,) = bench_verify.run(rows=2_000, turns=1)
    assert row.goal == "<= 1.5 x of without its indexes"
    assert float(row.ratio.removesuffix(" x")) > 0
    assert "verify" in NAMES


def test_the_table_has_a_line_for_each_row_between_equal_bars() -> None:
    lines = markdown([Row("what", "goal", "a long measurement"), Row("other", "", "short")]).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == len({len(line) for line in lines}) == 1


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([3, 1, 2], 50) == 2
    assert percentile([1, 2, 3], 99) == 3
    assert percentile([], 50) == 0
    assert spread([1.0, 2.0, 3.0]) == "p50 2.00, p99 3.00 ms"
