"""The engine as a whole: everything in its lists works together."""

from pulse_core.testing import given

from engine import PROJECTIONS, RULES


def test_a_quiet_machine_needs_nothing() -> None:
    story = given(*RULES, projections=PROJECTIONS)
    story.tick()
    story.expect_nothing()
    assert all(layer.outcome == "passed" for layer in story.layers)


def test_no_rule_stands_there_twice() -> None:
    assert len(set(RULES)) == len(RULES)
