"""What the live screen shows of the last minutes."""

from typing import Any

from pulse_core.app.status import courses


def test_each_number_has_its_course_and_what_was_not_measured_leaves_no_gap() -> None:
    samples: list[dict[str, Any]] = [
        {"cpu": None, "memory": 0.5, "load1": 1.0, "disks": {"/": {"used": 0.1}, "/x": {"error": "?"}}},
        {"cpu": 0.2, "memory": 0.6, "disks": {"/": {"used": 0.2}}},
        {},
    ]
    assert courses(samples) == {"cpu": [0.2], "memory": [0.5, 0.6], "load1": [1.0], "/": [0.1, 0.2]}
    assert courses([]) == {}
