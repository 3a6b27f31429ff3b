"""Positions in logs as earlier versions stored them."""

import pytest

from pulse_adapters.logs.followed_files import last_looked_at


@pytest.mark.parametrize(
    ("place", "when"),
    [
        ({"total": 7, "looked": 1_795_370_444_549_408_014, "files": []}, 1_795_370_444_549_408_014),
        ({"total": 7, "files": []}, 0),
        ({"looked": "yesterday"}, 0),
    ],
)
def test_a_stored_position_says_when_rotated_files_were_last_searched_for(
    place: dict[str, object], when: int
) -> None:
    assert last_looked_at(place) == when
