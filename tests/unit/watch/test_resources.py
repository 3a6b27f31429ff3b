"""What follows from one sample of the machine's vital signs, bound by bound."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.event import Draft
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.projections.conditions import Condition, Conditions
from pulse_core.projections.gauges import (
    FixedBound,
    Gauge,
    History,
    conclude_gauges,
    streaks,
    streaks_to_json,
)
from pulse_core.settings.resources import ResourcesSettings
from pulse_core.watch.evaluate_resources import conclude

SECOND = 1_000_000
WELL: Mapping[str, Any] = {
    "memory": 0.5, "memory_available": 8 << 30, "memory_total": 16 << 30, "swap": 0.0, "swap_total": 1 << 30,
    "psi": {"memory": {"some": 0.1, "full": 0.0}, "io": {"some": 0.1, "full": 0.0}},
    "disks": {"/": {"used": 0.5, "free": 1 << 30, "inodes": 0.1}},
}  # fmt: skip
SETTINGS = ResourcesSettings.model_validate(
    {
        "memory": {"raise": 0.9, "clear": 0.8, "for": "30s"},
        "swap": {"raise": 0.9, "clear": 0.7, "for": "0s"},
        "pressure": {"raise": 0.4, "clear": 0.1, "for": "10s"},
        "disk": {"path": "/", "raise": 0.9, "clear": 0.85},
    }
)
HUNG = {"error": "did not answer within 2 s"}


def at(seconds: float, boot: str = "boot") -> Moment:
    return Moment(10**15 + round(seconds * SECOND), boot, round(seconds * SECOND))


def memory(share: float) -> Mapping[str, Any]:
    return {**WELL, "memory": share}


def disk(**said: Any) -> Mapping[str, Any]:
    return {**WELL, "disks": {"/": said}}


class Sense:
    """Samples one after the other, what they conclude kept as the log and the samples keep it."""

    def __init__(self, settings: ResourcesSettings = SETTINGS) -> None:
        self.settings = settings
        self.raised: dict[str, Condition] = {}
        self.kept: Mapping[str, Any] = {}
        self.said: list[tuple[str, str, str]] = []

    def look(self, seconds: float, data: Mapping[str, Any]) -> list[str]:
        """What is new, as `raised NAME` or `cleared NAME`."""
        history = History(Conditions(self.raised), streaks(self.kept), 60 * SECOND)
        drafts, over = conclude(data, self.settings, history, at(seconds))
        self.kept = {"over": streaks_to_json(over)}
        return [self._take(draft, at(seconds)) for draft in drafts]

    def _take(self, draft: Draft, now: Moment) -> str:
        match draft.payload:
            case ConditionRaised(evidence=evidence, state=state, value=value, bound=bound):
                assert draft.subject not in self.raised, "raised twice"
                self.raised[draft.subject] = Condition(now, state, now, evidence, value, bound)
                word = "raised"
            case ConditionCleared(evidence=evidence):
                assert self.raised.pop(draft.subject), "cleared, and it did not stand"
                word = "cleared"
            case _:
                raise AssertionError(draft)
        self.said.append((word, draft.subject, evidence))
        return f"{word} {draft.subject}"

    def through(self, seconds: Sequence[float], data: Mapping[str, Any]) -> list[str]:
        return [news for second in seconds for news in self.look(second, data)]


def test_a_machine_that_is_well_gives_no_news() -> None:
    assert Sense().through(range(0, 600, 5), WELL) == []


def test_over_the_bound_counts_only_once_it_has_lasted() -> None:
    sense = Sense()
    assert sense.through((0, 5, 10, 15, 20, 25, 29.9), memory(0.9)) == []
    assert sense.look(30, memory(0.9)) == ["raised memory"]
    assert sense.said[-1][2] == "memory is used to 90.0%, 8.0 GiB are available, for at least 30 s"
    assert sense.through(range(35, 300, 5), memory(0.95)) == []


def test_a_dip_below_the_bound_begins_the_count_anew() -> None:
    sense = Sense()
    sense.through((0, 5, 10, 15, 20, 25), memory(0.95))
    assert sense.look(28, memory(0.89)) == []
    assert sense.through((30, 40, 50, 59), memory(0.95)) == []
    assert sense.look(60, memory(0.95)) == ["raised memory"]


@pytest.mark.parametrize(("share", "news"), [(0.9, []), (0.85, []), (0.8, []), (0.799, ["cleared memory"])])
def test_it_is_cleared_below_the_lower_bound_and_not_before(share: float, news: list[str]) -> None:
    sense = Sense()
    sense.through((0, 30), memory(0.95))
    assert sense.look(35, memory(share)) == news


def test_after_it_was_cleared_it_needs_its_time_again() -> None:
    sense = Sense()
    sense.through((0, 30), memory(0.95))
    sense.look(35, memory(0.1))
    assert sense.through((40, 50, 60, 69), memory(0.95)) == []
    assert sense.look(70, memory(0.95)) == ["raised memory"]


def test_a_restart_in_between_neither_forgets_nor_repeats() -> None:
    """All that the sense keeps is in the log and in the last sample; this one keeps nothing else anyway."""
    sense, later = Sense(), Sense()
    sense.through((0, 10), memory(0.95))
    later.raised, later.kept = sense.raised, sense.kept
    assert later.look(29, memory(0.95)) == []
    assert later.look(31, memory(0.95)) == ["raised memory"]


def test_what_nobody_watched_for_long_does_not_count_as_lasting() -> None:
    sense = Sense()
    sense.look(0, memory(0.95))
    assert sense.look(61, memory(0.95)) == []
    assert sense.look(91, memory(0.95)) == ["raised memory"]


def test_space_and_inodes_are_told_apart() -> None:
    sense = Sense()
    assert sense.look(0, disk(used=0.95, free=10, inodes=0.1)) == ["raised disk:/"]
    assert sense.look(5, disk(used=0.5, free=10, inodes=0.95)) == ["cleared disk:/", "raised inodes:/"]
    assert sense.look(10, disk(used=0.5, free=10)) == []  # its inodes are not told this time
    assert sense.look(15, disk(used=0.5, free=10, inodes=0.2)) == ["cleared inodes:/"]


def test_a_disk_that_does_not_answer_changes_nothing_at_first() -> None:
    sense = Sense()
    sense.look(0, disk(used=0.95, free=10))
    assert sense.through(range(5, 60, 5), disk(**HUNG)) == []
    assert sense.look(60, disk(used=0.5, free=10)) == ["cleared disk:/"]


def test_a_disk_that_does_not_answer_for_long_is_told() -> None:
    sense = Sense()
    sense.through(range(0, 65, 5), disk(**HUNG))
    words = "how full / is cannot be told: did not answer within 2 s, for at least 1 min"
    assert sense.said == [("raised", "unmeasured:/", words)]
    assert sense.look(70, WELL) == ["cleared unmeasured:/"]


def test_a_disk_that_was_never_asked_is_not_measured() -> None:
    assert Sense().through(range(0, 65, 5), {**WELL, "disks": {}}) == ["raised unmeasured:/"]


def test_a_path_that_is_not_watched_any_more_is_cleared_after_a_while() -> None:
    sense = Sense()
    sense.look(0, disk(used=0.95, free=10))
    sense.settings = SETTINGS.model_copy(update={"disk": ()})
    assert sense.look(30, WELL) == []
    assert sense.look(61, WELL) == ["cleared disk:/"]


def test_pressure_that_a_kernel_does_not_tell_is_no_news() -> None:
    assert Sense().through((0, 5), {**WELL, "psi": {}}) == []


def test_pressure_is_what_everything_waits_for() -> None:
    sense = Sense()
    some = {**WELL, "psi": {"memory": {"some": 1.0, "full": 0.39}, "io": {"some": 1.0, "full": 0.4}}}
    assert sense.through((0, 5, 10), some) == ["raised pressure:io"]
    assert sense.look(15, {**WELL, "psi": {}}) == []  # not told this once
    assert sense.look(20, WELL) == ["cleared pressure:io"]


def test_conditions_of_others_are_left_alone() -> None:
    sense = Sense()
    sense.raised["network"] = Condition(at(0), "down", at(0), "no answer")
    assert sense.look(0, WELL) == []


shares = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@given(shares)
def test_news_alternates_and_respects_the_bounds(values: list[float]) -> None:
    sense = Sense()
    news = [news for second, value in enumerate(values) for news in sense.look(second * 10, memory(value))]
    assert all(one != other for one, other in pairwise(news))
    if any(value < 0.8 for value in values[-1:]):
        assert "memory" not in sense.raised
    if len(values) >= 4 and min(values[-4:]) >= 0.9:
        assert "memory" in sense.raised


@given(shares)
def test_streaks_survive_being_kept_in_a_sample(values: list[float]) -> None:
    sense = Sense()
    for second, value in enumerate(values):
        sense.look(second, memory(value))
    assert streaks_to_json(streaks(sense.kept)) == sense.kept["over"]


def test_a_gauge_that_is_otherwise_wrong_is_raised_again_with_its_new_state() -> None:
    bound = FixedBound(1.0, 0.5)
    stands = Condition(at(0), "unmeasured", at(0), "nobody knows")
    history = History(Conditions({"it": stands}), {}, 60 * SECOND)
    for state, news in (("unmeasured", []), ("high", ["high"])):
        drafts, _ = conclude_gauges([Gauge("it", bound, 1.0, "too much", state)], (), history, at(5))
        assert [draft.payload.state for draft in drafts if isinstance(draft.payload, ConditionRaised)] == news
