"""Nobody is woken for what can wait."""

from datetime import UTC, datetime

import pytest
from pulse_core import Effect, Inner, Snapshot, Verdict
from pulse_core.testing import Story, given

from rules.quiet_nights import quiet_nights


async def busy(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Something inside that wishes for all of these."""
    keys = {"notify:deaths:gateway": "notify", "notify:disk-fills-up:/": "notify", "tidy": "run-command"}
    return (await inner(prev, curr)).plus(*(Effect(action=action, key=key) for key, action in keys.items()))


def at(hour: int, minute: int = 0) -> Story:
    """A tick at this time of the day."""
    moment = datetime(2027, 1, 15, hour, minute, tzinfo=UTC)
    story = given(quiet_nights, busy, at=round(moment.timestamp()) * 1_000_000)
    story.tick()
    return story


@pytest.mark.parametrize("time", [(7, 0), (12, 0), (22, 59)])
def test_by_day_everything_is_told(time: tuple[int, int]) -> None:
    at(*time).expect("notify", key="notify:deaths:gateway")


@pytest.mark.parametrize("time", [(23, 0), (0, 0), (6, 59)])
def test_by_night_a_notice_that_can_wait_does_so_and_says_it(time: tuple[int, int]) -> None:
    story = at(*time)
    assert [effect.key for effect in story.emitted] == ["notify:disk-fills-up:/", "tidy"]
    story.expect_note("notify:deaths:gateway waits for the morning")


def test_in_the_morning_it_is_told() -> None:
    story = at(6, 59)
    story.after("1m").tick()
    story.expect("notify", key="notify:deaths:gateway")
