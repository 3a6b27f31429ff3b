"""A real daemon, killed at every second named point and at random moments; the long form is `make campaign`."""

from pathlib import Path

import pytest

from tests.campaign.crash import BACK_WITHIN, POINTS, run


@pytest.mark.wall_clock
@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice(tmp_path: Path) -> None:
    points = POINTS[::4] + POINTS[3::4]  # before one, after the next
    seen = run(tmp_path / "home", kills=len(points) * 4 // 3, seed=1, random_each=4, points=points)
    assert seen["promised"] > 10
    assert (
        seen["slowest_start_s"] < 5 * BACK_WITHIN
    )  # how quick it is, the campaign says: here others work beside it
