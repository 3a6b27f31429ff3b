"""What the end of a daemon leaves running, as it is told."""

from typing import cast

import pytest

from pulse_core.model.home_status import HomeStatus, left_running

NOBODY = "It left no process running."


@pytest.mark.parametrize(
    ("process", "told"),
    [
        ({"state": "up", "pid": 7}, "it (process 7)."),
        ({"state": "up", "pid": None}, "it."),
        ({"state": "backing-off", "pid": None}, NOBODY),
        ({"state": "backing-off", "pid": 7}, "it (process 7)."),  # it lives, and does not serve
        ({"state": "backing-off", "pid": None, "leftovers": [8, 9]}, "it (left of its earlier lives: 8, 9)."),
        ({"state": "up", "pid": 7, "leftovers": [8]}, "it (process 7; left of its earlier lives: 8)."),
        (
            {"state": "down", "pid": None, "leftovers": range(1, 3001)},
            "it (left of its earlier lives: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2,988 more).",
        ),
    ],
)
def test_whoever_lives_is_told_whatever_its_state_is(process: dict[str, object], told: str) -> None:
    status = cast(HomeStatus, {"processes": [{"name": "it", **process}]})
    assert left_running(status) == (told if told == NOBODY else f"Left running, unguarded: {told}")


def test_what_capabilities_have_started_goes_on_and_is_told() -> None:
    status = cast(HomeStatus, {"processes": [], "programs": ["ada at task_000001 (process 7)"]})
    assert left_running(status) == "Left running, unguarded: ada at task_000001 (process 7)."
