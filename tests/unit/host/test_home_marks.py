"""Whose a process is, as its marks say: its log decides, wherever that lies; without one the path of the home does."""

from pathlib import Path

import pytest

from pulse_adapters.host.marked_processes import Bearer, HomeMarks
from pulse_core.ports.host import ProcessId

BEGUN = 10
"""When the log was begun; what is begun here by default is older."""

HOME, ELSEWHERE = Path("/home"), Path("/elsewhere")


def begun(home: Path, log: str) -> Bearer:
    return HomeMarks(home, log).borne(Bearer(ProcessId(1, 1), "effect", ""), "it")


@pytest.mark.parametrize(
    ("marks", "one", "own", "before"),
    [
        (HomeMarks(HOME, "log.1"), begun(HOME, "log.1"), "it", ""),
        (HomeMarks(ELSEWHERE, "log.1"), begun(HOME, "log.1"), "it", ""),
        (HomeMarks(HOME, "log.1"), begun(HOME, "other.1"), "", "it"),
        (HomeMarks(HOME, "log.1"), begun(HOME, "log.2"), "", ""),
        (HomeMarks(HOME, "log.1"), begun(ELSEWHERE, "other.1"), "", ""),
        (HomeMarks(HOME, "log.1"), begun(HOME, ""), "it", ""),
        (HomeMarks(ELSEWHERE, "log.1"), begun(HOME, ""), "", ""),
        (HomeMarks(HOME), begun(HOME, "log.1"), "it", ""),
        (HomeMarks(None), begun(HOME, "log.1"), "it", ""),
        (HomeMarks(HOME, "log.1", BEGUN), begun(HOME, ""), "", ""),
        (HomeMarks(HOME, "log.1", BEGUN), begun(HOME, "")._replace(found=ProcessId(1, BEGUN)), "it", ""),
        (HomeMarks(HOME, "log.1", BEGUN, lambda effect: effect == "effect"), begun(HOME, ""), "it", ""),
        (HomeMarks(HOME, "log.1", BEGUN), begun(HOME, "log.1"), "it", ""),
        (HomeMarks(HOME, "log.1", is_served=lambda log: log == "other.1"), begun(HOME, "other.1"), "", ""),
        (HomeMarks(HOME, "log.1"), Bearer(ProcessId(1, 1), "of a command", ""), "", ""),
    ],
    ids=[
        "its own",
        "its home was moved",
        "the log in its place was lost or moved",
        "of another PID namespace",
        "of another home",
        "begun by Pulse 0.x",
        "begun by Pulse 0.x elsewhere",
        "who has no log",
        "who asks for any home",
        "begun by Pulse 0.x for a home that was here before",
        "begun by Pulse 0.x after the log was",
        "begun by Pulse 0.x as the log knows",
        "its own before the first row",
        "the log in its place was moved and is served",
        "a command",
    ],
)
def test_the_log_decides_whose_a_process_is(marks: HomeMarks, one: Bearer, own: str, before: str) -> None:
    assert (marks.name_of(one), marks.name_before(one)) == (own, before)


@pytest.mark.parametrize("one", [begun(HOME, "log.1"), begun(ELSEWHERE, "other.1"), begun(HOME, "other.2")])
def test_nobody_asks_whether_a_log_is_served_unless_all_else_fits(one: Bearer) -> None:
    asked: list[str] = []
    marks = HomeMarks(HOME, "log.1", is_served=lambda log: bool(asked.append(log)))
    marks.name_before(one)
    assert asked == []


@pytest.mark.parametrize(
    ("marks", "log", "is_own"),
    [
        (HomeMarks(HOME), "log.1", True),
        (HomeMarks(HOME, "log.1", BEGUN), "log.1", True),
        (HomeMarks(HOME, "log.1"), "other.1", False),
        (HomeMarks(HOME, "log.1", BEGUN), "other.1", True),
        (HomeMarks(HOME, "log.1", BEGUN, is_served=lambda log: True), "other.1", False),
        (HomeMarks(HOME, "log.1", BEGUN), "other.2", False),
        (HomeMarks(HOME, "log.1", BEGUN), "", False),
        (HomeMarks(HOME, "log.1", BEGUN, lambda effect: True), "", True),
    ],
    ids=[
        "who has no log",
        "its own",
        "the logs were exchanged",
        "the log in its place was lost",
        "the log in its place is served elsewhere",
        "of another PID namespace",
        "of nobody",
        "of nobody, as the log knows",
    ],
)
def test_a_group_in_the_place_of_a_home_is_of_the_log_that_it_names(
    marks: HomeMarks, log: str, is_own: bool
) -> None:
    assert marks.are_in_group(ProcessId(1, 1), "effect", log) == is_own
