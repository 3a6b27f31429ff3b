"""A day leaves no more in memory than the day before did."""

import gc
import logging
import os
import sys
from collections.abc import Iterator

import pytest

from pulse_core.projections.effects import decode_effect, decode_plain_effect
from tests.long_form import sample
from tests.simulation.day import Day, lived

pytestmark = pytest.mark.usefixtures(sample("rare_rounds", "usual_rounds"))

HOURS = 4
"""The third fills what the fourth empties again."""
A_DAY = 2 << 20
"""Bytes that memory may grow by in 24 hours."""

BLOCK = 80
"""Bytes of a small object, about."""
OF_AN_INCIDENT = 40
"""Small objects that the memory of one incident has; a fixed number of incidents is remembered."""


def held() -> int:
    """How many small objects there are, without those that a cache of fixed size holds."""
    decode_effect.cache_clear()
    decode_plain_effect.cache_clear()
    gc.collect()
    return sys.getallocatedblocks()


def descriptors() -> int:
    gc.collect()  # those of tests before this one
    return len(os.listdir("/proc/self/fd"))


class Nothing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return False


@pytest.fixture
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What is logged for people is not kept by the test."""
    with caplog.at_level("CRITICAL"), caplog.filtering(Nothing()):
        yield


@pytest.mark.usefixtures("quiet_log")
def test_memory_and_descriptors_do_not_grow_from_hour_to_hour_of_a_day_that_has_everything_in_it() -> None:
    """What is never done on such a day, its memory says nothing about."""
    seen, incidents, watchers = list[int](), list[int](), set[str]()
    before = descriptors()

    def look(_hour: int, day: Day) -> None:
        assert day.world.daemon is not None
        watchers.update(one["name"] for one in day.world.daemon.report()["watchers"])
        seen.append(held())
        incidents.append(len(day.world.daemon.incidents.fold.state.all))

    world = lived(HOURS, look, seed=7)  # a seed by which it all happens in these hours
    remembered = (incidents[-1] - incidents[0]) * OF_AN_INCIDENT
    grown = (seen[-1] - seen[0] - remembered) * BLOCK
    assert grown <= A_DAY * (HOURS - 1) / 24, f"small objects after each hour: {seen}, incidents: {incidents}"
    assert descriptors() == before
    assert world.daemon is not None
    assert world.daemon.ticker.number > HOURS * 500
    counts = world.log.counts  # type: ignore[attr-defined]
    wanted = {
        "process-died", "process-up", "condition-raised", "condition-cleared", "log-matched", "effect-acked",
        "paused", "resumed", "silence-added", "process-stop-requested", "settings-loaded",
    }  # fmt: skip
    assert wanted <= counts.keys()
    assert counts["process-up"] > 20
    assert watchers == {"process-alive", "system-resource", "network", "llm", "error-log"}
