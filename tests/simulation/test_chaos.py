"""Lives on which everything goes wrong; a seed that fails is printed and can be lived again."""

import pytest

from tests.simulation.chaos import live


@pytest.mark.parametrize("seed", range(25))
def test_the_laws_hold_whatever_goes_wrong(seed: int) -> None:
    assert live(seed, deeds=60).daemon is not None


def test_a_seed_is_lived_the_same_way_twice() -> None:
    def told(seed: int) -> list[tuple[str, str, int]]:
        return [(event.kind, event.subject, event.mono) for event in live(seed, deeds=30).log.events]

    assert told(7) == told(7)
