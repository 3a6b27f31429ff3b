"""What is known of logs: how far they are read, and what their lines have in common."""

from itertools import product

import pytest

from pulse_core.model.kinds import LogMatched
from pulse_core.projections.logs import ALIKE, ENTRIES, QUIET, SEEN, SOURCES, Logs, after, shape_of
from tests.events import SECOND, event


def said(*rows: tuple[float, str, tuple[str, ...]], source: str = "/a") -> Logs:
    """A log in which these lines were said: (second, severity, lines)."""
    events = [
        event(
            seq,
            LogMatched(severity=severity, lines=lines, count=len(lines) + 1, place={"total": seq}),
            source,
            at=round(second * SECOND),
        )
        for seq, (second, severity, lines) in enumerate(rows, 1)
    ]
    return after(Logs(), events)


def test_the_place_is_the_last_one() -> None:
    assert said((1, "error", ("x",)), (2, "error", ("y",))).of["/a"].place == {"total": 2}


def test_lines_that_differ_in_numbers_are_alike() -> None:
    source = said((1, "warning", ("took 12 ms", "no disk")), (9, "error", ("took 7000 ms",))).of["/a"]
    assert [(one.line, one.number, one.severity) for one in source.alike.values()] == [
        ("no disk", 1, "warning"),
        ("took 12 ms", 2, "error"),
    ]
    took = source.alike["took # ms"]
    assert (took.first.mono, took.last.mono) == (SECOND, 9 * SECOND)
    assert source.lines == 5


def test_after_a_quiet_time_another_story_begins() -> None:
    quiet = QUIET / SECOND
    together = said((1, "error", ("a",)), (quiet, "error", ("b",))).of["/a"]
    assert [one.line for one in together.alike.values()] == ["a", "b"]
    apart = said((1, "error", ("a",)), (1 + quiet, "error", ("b",))).of["/a"]
    assert [one.line for one in apart.alike.values()] == ["b"]
    assert apart.lines == 2
    assert len(apart.seen) == 2


def test_what_is_kept_is_bounded() -> None:
    words = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(200)]
    source = said(*((number, "error", (word * 200,)) for number, word in enumerate(words))).of["/a"]
    assert len(source.alike) == ALIKE
    assert len(source.seen) == SEEN
    assert list(source.alike)[-1].startswith(words[-1])
    assert all(len(one.line) <= 300 for one in source.alike.values())
    many = [
        event(seq, LogMatched(severity="error", lines=(), count=1), f"/{seq}")
        for seq in range(1, SOURCES + 10)
    ]
    state = after(Logs(), many)
    assert len(state.of) == SOURCES
    assert "/1" not in state.of


def test_the_one_that_spoke_last_is_at_the_end() -> None:
    events = [
        event(seq, LogMatched(severity="error", lines=(), count=1), source)
        for seq, source in enumerate(["/a", "/b", "/a"], 1)
    ]
    assert list(after(Logs(), events).of) == ["/b", "/a"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-01-31T08:15:00.123Z failed", "2027-12-01T23:59:59.999Z failed"),
        (
            "request 1a2b3c4d-0000-4000-8000-0123456789ab failed",
            "request ffffffff-1111-4111-8111-aaaaaaaaaaaa failed",
        ),
        ("at 0x7f3b2ac26490", "at 0x1"),
        ("commit deadbeef0 lost", "commit 0123456789 lost"),
        ("pid 7 took 1.5s", "pid 70000 took 12.25s"),
    ],
)
def test_lines_that_say_the_same_have_one_shape(one: str, other: str) -> None:
    assert shape_of(one) == shape_of(other)


@pytest.mark.parametrize(("one", "other"), [("no disk", "no memory"), ("facade failed", "decade failed")])
def test_lines_that_say_something_else_have_another_shape(one: str, other: str) -> None:
    assert shape_of(one) != shape_of(other)


def test_a_shape_is_quickly_found_whatever_the_line() -> None:
    for line in ("a1" * 5_000, "abcdef-" * 3_000, "1." * 5_000, "-".join(["abcd"] * 4_000)):
        assert len(shape_of(line)) <= 300


def test_of_many_logs_the_latest_lines_are_kept_together_bounded() -> None:
    words = ("".join(pair) for pair in product("abcdefghij", repeat=2))
    lines = tuple(words)[:ALIKE]
    many = [
        event(seq, LogMatched(severity="error", lines=lines, count=ALIKE, place={"total": seq}), f"/{seq}")
        for seq in range(1, SOURCES + 1)
    ]
    state = after(Logs(), many)
    assert state.entries == sum(source.entries for source in state.of.values()) <= ENTRIES
    sources = list(state.of.values())
    assert [len(source.alike) for source in sources[-100:]] == [ALIKE] * 100
    assert [(source.place, source.alike) for source in sources[:2]] == [
        ({"total": 1}, {}),
        ({"total": 2}, {}),
    ]
    cut = after(Logs(), many[:333])
    assert after(cut, many[333:]) == state  # however it is cut
