"""Which errors are counted against which turn of the engine."""

from typing import Any

import pytest

from pulse_core.app.engine.history import is_of_engine, turns_in

TURN = {"commit": "abc"}


def error(subject: str, **data: Any) -> dict[str, Any]:
    return {"kind": "error", "subject": subject, "data": {"message": "no", **data}}


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        (error("watcher:queue", commit="abc"), True),
        (error("executor:beep", commit="abc"), True),
        (error("watcher:queue", commit="earlier"), False),
        (error("rule:mine", commit="earlier"), False),
        (error("watcher:network"), False),
        (error("rule:mine"), True),
    ],
)
def test_an_error_counts_against_the_commit_that_it_is_of(event: dict[str, Any], counts: bool) -> None:
    assert is_of_engine(TURN, event) is counts


def test_errors_that_are_recorded_after_the_rollback_of_their_commit_count_against_that_commit() -> None:
    def event(kind: str, subject: str, **data: Any) -> dict[str, Any]:
        return {"kind": kind, "subject": subject, "at": "", "actor": "pulse", "data": data}

    first, back, again = turns_in(
        [
            event("promote", "abc"),
            error("rule:mine", commit="abc", repeats=3),
            event("rollback", "def", rejected="abc"),
            error("rule:mine", commit="abc", repeats=2),
            error("rule:mine"),
            event("promote", "ghi"),
            error("rule:mine", commit="ghi"),
        ]
    )
    assert (first["errors"], back["errors"], again["errors"]) == (7, 1, 1)


def test_an_error_that_was_redacted_counts_by_its_subject() -> None:
    assert is_of_engine(TURN, {"kind": "error", "subject": "rule:mine", "data": None})
    assert not is_of_engine(TURN, {"kind": "error", "subject": "watcher:x", "data": None})
