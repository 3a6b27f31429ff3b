"""Refused effects are counted for a minute, each key once."""

from pulse_core.execute.limits import MINUTE, Refusals
from pulse_core.model.moment import Moment

NOW = Moment(10**15, "boot", 10**9)


def test_the_same_effect_counts_once_and_for_a_minute() -> None:
    refusals = Refusals()
    for key in ("one", "one", "another"):
        refusals.add("rule", key, NOW)
    assert refusals.of("rule", NOW) == 2
    assert refusals.of("another rule", NOW) == 0
    assert refusals.of("rule", NOW.plus(MINUTE)) == 0
