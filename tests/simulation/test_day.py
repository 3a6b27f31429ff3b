"""A day leaves no more in memory than the day before did."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pulse_core.projections.effects import decode_effect, decode_plain_effect
from tests.simulation.day import SETTINGS, Day, lived

HOURS = 3
A_DAY = 2 << 20
"""Bytes that memory may grow by in 24 hours."""

BLOCK = 80
"""Bytes of a small object, about."""


def held() -> int:
    """How many small objects there are, without those that a cache of fixed size holds."""
    decode_effect.cache_clear()
    decode_plain_effect.cache_clear()
    gc.collect()
    return sys.getallocatedblocks()


def descriptors() -> int:
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
def test_memory_and_descriptors_do_not_grow_from_hour_to_hour() -> None:
    seen: list[int] = []
    before = descriptors()
    hours = HOURS + 1  # the third fills what the fourth empties again
    world = lived(hours, lambda hour, day: seen.append(held()))
    grown = (seen[-1] - seen[0]) * BLOCK
    assert grown <= A_DAY * (hours - 1) / 24, f"small objects after each hour: {seen}"
    assert descriptors() == before
    assert world.daemon is not None
    assert world.daemon.ticker.number > hours * 500


@pytest.mark.usefixtures("quiet_log")
def test_a_day_has_everything_in_it() -> None:
    """What is never done on such a day, its memory says nothing about."""
    counts: dict[str, int] = {}
    told: list[dict[str, Any]] = []

    def look(hour: int, day: Day) -> None:
        assert day.world.daemon is not None
        told.append(dict(day.world.daemon.report()))

    world = lived(HOURS, look, seed=1, settings=SETTINGS)  # a seed by which it all happens in these hours
    counts = world.log.counts  # type: ignore[attr-defined]
    wanted = {
        "process-died", "process-up", "condition-raised", "condition-cleared", "log-matched", "effect-acked",
        "paused", "resumed", "silence-added", "process-stop-requested", "settings-loaded",
    }  # fmt: skip
    assert wanted <= counts.keys()
    assert counts["process-up"] > 20
    assert {one["name"] for one in told[-1]["watchers"]} == {
        "process-alive", "system-resource", "network", "llm", "error-log"
    }  # fmt: skip
