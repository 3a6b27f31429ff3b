"""Whose a process is, as its marks say: its log decides, wherever that lies; without one the path of the home does."""

from pathlib import Path

import pytest

from pulse_adapters.host.marked_processes import Bearer, HomeMarks
from pulse_core.ports.host import ProcessId

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
        "a command",
    ],
)
def test_the_log_decides_whose_a_process_is(marks: HomeMarks, one: Bearer, own: str, before: str) -> None:
    assert (marks.name_of(one), marks.name_before(one)) == (own, before)
