"""Anchors are read from lines that anybody may have added."""

import pytest

from pulse_core.model.anchor import Anchor, read_anchors
from pulse_core.model.event import Head

GOOD = Anchor("home", "/path", Head(3, b"x" * 32), 7)


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "null",
        GOOD.line()[:-5],
        GOOD.line().replace("3", "1e999", 1),
        GOOD._replace(head=Head(2**63, b"x" * 32)).line(),
        GOOD._replace(head=Head(-1, b"x" * 32)).line(),
        GOOD.line().replace('"at": 7', '"at": Infinity'),
    ],
)
def test_a_line_that_is_no_anchor_is_passed_over(line: str) -> None:
    assert list(read_anchors([line, GOOD.line()])) == [GOOD]


def test_a_line_behind_one_that_was_cut_short_is_read() -> None:
    assert list(read_anchors([GOOD.line()[:-5] + GOOD.line()])) == [GOOD]
