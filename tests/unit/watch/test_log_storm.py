"""When a log is a storm."""

import pytest

from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.projections.conditions import Condition
from pulse_core.watch.log_storm import MINUTE, LineCounter, LineCounts, conclude

THEN = Moment(0, "boot", 0)


def standing(lines: float | None) -> Condition:
    return Condition(THEN, "storm", THEN, "many lines", lines, 600.0)


def said(minute: LineCounts, before: Condition | None) -> list[Payload]:
    drafts = conclude("/a", minute, before)
    assert all(draft.subject == "log:/a" for draft in drafts)
    return [draft.payload for draft in drafts]


@pytest.mark.parametrize(
    ("minute", "before", "kind"),
    [
        (LineCounts(600, 0, 600, MINUTE), None, None),
        (LineCounts(601, 1, 600, 5), None, ConditionRaised),
        (LineCounts(601, 1, 600, MINUTE), 601.0, None),
        (LineCounts(6_009, 5_409, 600, MINUTE), 601.0, None),
        (LineCounts(6_010, 5_410, 600, MINUTE), 601.0, ConditionRaised),
        (LineCounts(600, 0, 600, MINUTE), 601.0, None),
        (LineCounts(301, 0, 600, MINUTE), 601.0, None),
        (LineCounts(300, 0, 600, MINUTE), 601.0, ConditionCleared),
        (LineCounts(0, 0, 0, MINUTE), 601.0, ConditionCleared),
        (LineCounts(0, 0, 600, MINUTE - 1), 601.0, None),
        (LineCounts(0, 0, 0, MINUTE), None, None),
    ],
)
def test_a_storm_begins_with_what_is_not_told_and_ends_in_a_calm_minute(
    minute: LineCounts, before: float | None, kind: type[Payload] | None
) -> None:
    told = said(minute, standing(before) if before is not None else None)
    assert [type(one) for one in told] == ([kind] if kind else [])


def test_it_says_how_much_it_is_and_what_the_limit_is() -> None:
    (raised,) = said(LineCounts(2_000, 1_400, 600, MINUTE), None)
    assert isinstance(raised, ConditionRaised)
    assert (raised.value, raised.bound, raised.state) == (2_000, 600, "storm")
    assert raised.evidence == "2000 lines within a minute, of which 1400 are only counted"


def test_a_minute_is_the_last_one_and_no_more() -> None:
    tally = LineCounter()
    tally.add(5, 1, 600, 0)
    tally.add(7, 2, 600, MINUTE // 2)
    assert tally.minute(0, MINUTE - 1) == LineCounts(12, 3, 600, MINUTE - 1)
    assert tally.minute(0, MINUTE) == LineCounts(7, 2, 600, MINUTE)
    assert tally.minute(0, 2 * MINUTE) == LineCounts(0, 0, 600, MINUTE)
