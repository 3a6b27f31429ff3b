"""What the hostile suite lets pass, and what not."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.hostile_suite import Outcome, begun_after, was_replaced


@pytest.mark.parametrize(
    ("hostile", "harmless", "passes"),
    [
        (19, 7, True),
        (22, 7, False),  # three times as long, and more
        (21, 9, False),  # the machine is quiet
        (29, 11, True),  # it is not
        (120, 30, False),
        (80, 30, True),
    ],
)
def test_recoveries_are_judged_by_those_where_nobody_attacks(
    hostile: int, harmless: int, passes: bool
) -> None:
    outcome = Outcome([hostile * 1_000] * 10, [harmless * 1_000] * 10, 1, 1, 1)
    assert (outcome.verdict() == "") == passes


def test_one_of_few_may_be_late_and_an_attack_that_did_not_begin_proves_nothing() -> None:
    few = [*[5_000] * 9, 900_000]
    assert Outcome(few, [5_000] * 10, 1, 1, 1).verdict() == ""
    assert "too slow" in Outcome([*few, 900_000], [5_000] * 10, 1, 1, 1).verdict()
    assert "no attack" in Outcome(few, few, 1, 0, 1).verdict()
    assert "no attack" in Outcome(few, few, 1, 1, 0).verdict()


def restart(id_: str, **moments: int) -> Sequence[Mapping[str, Any]]:
    """What the log has of a restart by survival, with the moments of its events."""
    wish = {"action": "restart-process", "survival": True}
    return [
        {
            "kind": kind if kind == "effect" else f"effect-{kind}",
            "id": id_,
            "subject": id_,
            "mono": mono,
            "data": wish,
        }
        for kind, mono in moments.items()
    ]


def test_a_recovery_is_the_first_attempt_at_a_restart_after_the_kill_whenever_that_was_wished() -> None:
    at, earlier = 100, restart("before", effect=10, executing=20, acked=30)
    assert begun_after(earlier, at) is None
    assert begun_after([*earlier, *restart("after", effect=102, executing=103, acked=110)], at) == 3
    tried_again = [*restart("b", effect=80, executing=85), *restart("b", executing=107, acked=120)]
    assert begun_after([*earlier, *tried_again], at) == 7


def test_a_kill_of_what_was_being_replaced_tells_nothing() -> None:
    assert was_replaced(restart("b", effect=80, executing=90, acked=120), 100)
    assert not was_replaced(restart("b", effect=80, executing=90, acked=99), 100)
