"""What goes when Pulse's own files take too much."""

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.daemon.disk_quota import Cut, ProcessOutput, QuotaPlan, plan_quota

MIB = 1 << 20


def test_within_the_bound_nothing_goes() -> None:
    assert plan_quota(60 * MIB, [ProcessOutput("a.log", 40 * MIB)], 100 * MIB) == QuotaPlan()


def test_the_largest_outputs_are_cut_and_the_small_ones_are_left() -> None:
    outputs = [
        ProcessOutput("small.log", MIB),
        ProcessOutput("big.log", 90 * MIB, 10 * MIB),
        ProcessOutput("tiny.log", 9),
    ]
    assert plan_quota(10 * MIB, outputs, 100 * MIB) == QuotaPlan((Cut("big.log", 25 * MIB // 3),))


def test_an_output_that_is_all_in_its_older_file_is_CutToo() -> None:
    assert plan_quota(0, [ProcessOutput("a.log", 5, 200 * MIB)], 100 * MIB) == QuotaPlan((Cut("a.log", 5),))


def test_vitals_go_from_the_oldest_on_at_least_a_quarter_at_once() -> None:
    assert plan_quota(101 * MIB, [], 100 * MIB) == QuotaPlan(forget=1 - 50 / 101)
    assert plan_quota(55 * MIB, [ProcessOutput("a.log", 46 * MIB)], 100 * MIB) == QuotaPlan(forget=0.25)
    assert plan_quota(10_000 * MIB, [], 100 * MIB) == QuotaPlan(forget=0.9)


def test_both_go_when_both_take_more_than_half() -> None:
    found = plan_quota(80 * MIB, [ProcessOutput("a.log", 80 * MIB)], 100 * MIB)
    assert (found.cuts, found.forget) == ((Cut("a.log", 25 * MIB),), 0.375)


sizes = st.integers(0, 1 << 34)
outputs = st.lists(st.builds(ProcessOutput, st.uuids().map(str), sizes, sizes), max_size=50)


@given(sizes, outputs, st.integers(16, 4096))
def test_afterwards_the_outputs_take_half_at_most_and_something_went(
    vitals: int, printed: list[ProcessOutput], bound_mib: int
) -> None:
    bound = bound_mib * MIB
    found = plan_quota(vitals, printed, bound)
    cut = {one.name: one.kept for one in found.cuts}
    left = sum(cut.get(one.name, one.whole) for one in printed)
    over = vitals + sum(one.whole for one in printed) > bound
    assert over is bool(found.cuts or found.forget)
    assert not over or left <= bound // 2
    assert all(kept <= next(one.size for one in printed if one.name == name) for name, kept in cut.items())
