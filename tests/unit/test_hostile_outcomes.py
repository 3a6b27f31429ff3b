"""What the hostile suite lets pass, and what not."""

import pytest

from tests.hostile_suite import Outcome


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
