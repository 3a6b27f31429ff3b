"""What is given up, when, and when it is taken up again: table by table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.daemon.load_shedding import MEASURES, Pace, SheddingState, Usage, next_state, pace, usage
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.vitals import Sample
from pulse_core.settings.telemetry import SelfSettings

BOUNDS = SelfSettings(cpu=0.2, memory_mb=100, late_ms=400)
MIB = 1 << 20
IDLE: dict[str, Any] = {"cpu": 0.01, "rss": 40 * MIB, "late_ms": 1.0}
BUSY, FAT, LATE = {"cpu": 0.5}, {"rss": 101 * MIB}, {"late_ms": 500.0}


def at(second: float) -> Moment:
    return Moment(round(second * US_PER_SECOND), "boot", round(second * US_PER_SECOND))


def lived(
    *chapters: tuple[int, dict[str, Any]], every: float = 5, shed: SheddingState | None = None
) -> list[tuple[float, SheddingState]]:
    """What was decided and when, for chapters of so many seconds in which this was used."""
    told, now, shed = [], 0.0, shed or SheddingState()
    for seconds, used in chapters:
        for _ in range(round(seconds / every)):
            now += every
            shed = next_state(shed, Usage(at(now), round(every * US_PER_SECOND), **IDLE | used), BOUNDS)
            told.append((now, shed))
    return told


def steps(told: list[tuple[float, SheddingState]]) -> list[tuple[float, int]]:
    """The seconds at which the level changed, and to what."""
    levels = [(now, shed.level) for now, shed in told]
    return [one for before, one in zip([(0.0, 0), *levels], levels, strict=False) if before[1] != one[1]]


@pytest.mark.parametrize("too_much", [FAT, LATE], ids=["memory", "lateness"])
def test_what_is_too_much_for_half_a_minute_costs_one_step_after_the_other(too_much: dict[str, Any]) -> None:
    assert steps(lived((300, too_much))) == [(35, 1), (70, 2), (105, 3), (140, 4)]


def test_the_processor_counts_over_a_minute_and_anew_after_each_step() -> None:
    assert steps(lived((30, {}), (300, BUSY))) == [(90, 1), (180, 2), (270, 3)]


@pytest.mark.parametrize(
    "story",
    [
        [(600, {})],
        [(25, FAT), (5, {}), (25, FAT), (5, {})] * 9,
        [(5, LATE), (5, {})] * 60,
        [(20, BUSY), (100, {})] * 5,
        [(600, {"cpu": 0.199, "rss": 99 * MIB, "late_ms": 399.0})],
    ],
    ids=["nothing", "now and then fat", "every other look late", "bursts", "just below"],
)
def test_what_passes_or_is_not_too_much_changes_nothing(story: list[tuple[int, dict[str, Any]]]) -> None:
    assert steps(lived(*story)) == []


def test_it_is_taken_up_again_one_step_at_a_time() -> None:
    story = lived((75, FAT), (600, {}))
    assert steps(story) == [(35, 1), (70, 2), (200, 1), (325, 0)]


def test_between_the_bound_and_well_below_it_nothing_changes() -> None:
    nearly = {"rss": 90 * MIB}
    assert steps(lived((75, FAT), (3_600, nearly)))[-1] == (70, 2)
    assert steps(lived((75, FAT), (115, {}), (5, nearly), (115, {}), (5, nearly)))[-1] == (70, 2)


def test_nothing_is_given_up_beyond_the_last_step() -> None:
    assert steps(lived((3_600, FAT)))[-1] == (140, len(MEASURES))


def test_it_says_why() -> None:
    assert lived((40, FAT))[-1][1].evidence == "101.0 MiB of memory, 100.0 MiB are allowed"
    assert lived((40, LATE))[-1][1].evidence == "the loop is 500 ms late, 400 ms are allowed"
    assert lived((100, BUSY))[-1][1].evidence == "50.0% of a core, 20.0% are allowed"
    better = lived((40, FAT), (200, {}))[-1][1]
    assert (better.level, better.evidence) == (0, "at most 40.0 MiB of memory, 100.0 MiB are allowed")


@pytest.mark.parametrize("every", [0.5, 5, 20, 60, 300])
def test_rare_looks_lead_to_the_same_decision(every: float) -> None:
    busy = steps(lived((round(max(600, 9 * every)), BUSY), every=every))
    assert [level for _, level in busy] == [1, 2, 3, 4]
    assert busy[0][0] >= 60


@given(st.lists(st.sampled_from([BUSY, FAT, LATE, IDLE]), max_size=200))
def test_no_step_is_left_out_and_none_is_hasty(used: list[dict[str, Any]]) -> None:
    changed = steps(lived(*((5, one) for one in used)))
    for (then, before), (now, after) in zip([(0.0, 0), *changed], changed, strict=False):
        assert abs(after - before) == 1
        assert now - then >= (30 if after > before else 120)


@given(st.lists(st.sampled_from([BUSY, FAT, LATE, IDLE]), max_size=300))
def test_no_more_looks_are_kept_than_a_minute_needs(used: list[dict[str, Any]]) -> None:
    assert all(len(shed.looks) <= 13 for _, shed in lived(*((5, one) for one in used)))


def test_a_sample_says_what_was_used_since_the_one_before() -> None:
    data = {"self_cpu": 0.1, "self_rss": 5, "loop_late_ms": 2.0}
    assert usage(Sample(1, "k", at(7), data), at(2)) == Usage(at(7), 5 * US_PER_SECOND, 0.1, 5, 2.0)
    assert usage(Sample(1, "k", at(7), data), None) == Usage(at(7), 0, 0.1, 5, 2.0)
    assert usage(Sample(1, "k", at(7), {"cpu": 0.5}), None) is None


@pytest.mark.parametrize(
    ("level", "name", "interval", "slowed"),
    [
        (0, "network", 15, Pace()),
        (1, "network", 15, Pace(4)),
        (1, "llm", 0.05, Pace()),
        (1, "error-log", 60, Pace(4)),
        (2, "error-log", 60, Pace(4, 5)),
        (2, "network", 15, Pace(4)),
        (4, "system-resource", 5, Pace()),
    ],
)
def test_who_is_slowed_down_and_how(level: int, name: str, interval: float, slowed: Pace) -> None:
    assert pace(level, name, interval, float("inf")) == slowed


def test_looks_at_processes_are_slowed_down_unless_one_is_in_doubt() -> None:
    assert pace(4, "process-alive", 5.0, 5.0) == Pace(4)
    assert pace(4, "process-alive", 0.5, 5.0) == Pace()
    assert pace(4, "process-alive", 0.2, 0.2) == Pace(4)
