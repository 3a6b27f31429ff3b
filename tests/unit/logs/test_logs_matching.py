"""Which lines are looked for, how they are told, and how many of them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.logs.line_filter import (
    LinePattern,
    matches_by_rule,
    matching_lines,
    pattern_from_json,
    printable_line,
)
from pulse_adapters.logs.tail import RateLimit


def rule(**spelled: object) -> LinePattern:
    return pattern_from_json(
        {"keywords": [], "match": [], "ignore": [], "severity": "error", "lines_per_minute": 600, **spelled}
    )


def found(block: str, **spelled: object) -> list[str]:
    return [printable_line(line) for line in matching_lines(rule(**spelled), block.encode())]


def test_whole_lines_around_hits_are_found_in_their_order() -> None:
    block = "one\nERROR two\nthree\nTraceback four ERROR\nfive\n"
    assert found(block, keywords=["Traceback", "ERROR"]) == ["ERROR two", "Traceback four ERROR"]


def test_a_line_counts_once_however_often_a_word_is_in_it() -> None:
    assert found("ERROR ERROR Traceback\n", keywords=["ERROR", "Traceback"]) == ["ERROR ERROR Traceback"]


def test_a_line_that_several_logs_look_for_counts_once_as_the_worst_of_them() -> None:
    """It was counted twice: `one of 8 lines` of 7, and `(one of 2 alike)` in the notice of a line that was written once."""
    rules = {0: rule(keywords=["ERROR"]), 1: rule(keywords=["PANIC", "fatal"], severity="critical")}
    block = b"ERROR one\nERROR fatal two\nPANIC three\nfine\nERROR one\n"
    assert matches_by_rule(rules, block) == {
        1: [b"ERROR fatal two", b"PANIC three"],
        0: [b"ERROR one", b"ERROR one"],
    }
    assert matches_by_rule({0: rules[0]}, b"fine\n") == {}


def test_case_matters_and_a_word_with_a_line_break_is_in_no_line() -> None:
    assert found("error\nER\nROR\n", keywords=["ERROR", "ER\nROR"]) == []


def test_expressions_are_searched_line_by_line() -> None:
    block = "status=200\nstatus=503\nendstatus=\n500\n"
    assert found(block, match=[r"status=5\d\d", r"^endstatus=$"]) == ["status=503", "endstatus="]


def test_expressions_see_characters_and_not_bytes() -> None:
    assert found("käse\nk\nkse\n", match=["k.se"]) == ["käse"]


def test_what_is_ignored_does_not_count_after_all() -> None:
    assert found("ERROR: none\nERROR: one\n", keywords=["ERROR"], ignore=["ERROR: none"]) == ["ERROR: one"]
    assert found("x1 off\nx2\n", match=[r"x\d"], ignore=["off"]) == ["x2"]


def test_what_is_no_utf_8_is_replaced() -> None:
    (line,) = matching_lines(rule(keywords=["ERROR"]), b"\xff\xfe ERROR \x80\r\n")
    assert printable_line(line) == "\ufffd\ufffd ERROR \ufffd"


def test_what_would_do_something_to_a_terminal_is_replaced() -> None:
    assert printable_line(b"\x1b[31mERROR\x00\x07\tof \xc2\x9b2J") == "?[31mERROR??\tof ?2J"


def test_expressions_see_what_is_written_and_not_what_is_told() -> None:
    assert found("\x1b[31mERROR\r\n", match=["^\x1b\\[31mERROR$"]) == ["?[31mERROR"]


def test_of_a_long_line_the_beginning_is_told() -> None:
    assert printable_line(b"x" * 2_000) == "x" * 2_000
    assert printable_line(b"x" * 2_001) == "x" * 1_997 + "..."
    assert printable_line("ä".encode() * 5_000) == "ä" * 1_997 + "..."


texts = st.text(alphabet="abE \tä", max_size=8)


@given(st.lists(texts, max_size=12), st.lists(texts.filter(bool), min_size=1, max_size=3), st.booleans())
def test_what_is_found_is_what_a_simple_search_finds(
    lines: list[str], words: list[str], ignoring: bool
) -> None:
    ignore = ["aE"] if ignoring else []
    simple = [
        line
        for line in lines
        if any(word in line for word in words) and not any(text in line for text in ignore)
    ]
    block = "".join(f"{line}\n" for line in lines).encode()
    assert [line.decode() for line in matching_lines(rule(keywords=words, ignore=ignore), block)] == simple
    expressions = [re.escape(word) for word in words]
    assert [line.decode() for line in matching_lines(rule(match=expressions, ignore=ignore), block)] == simple


def test_a_pattern_that_no_longer_works_finds_nothing_and_the_others_go_on() -> None:
    assert found("ab\nac\n", match=["a(?!b)", "^ab"]) == ["ab"]


def test_no_minute_has_more_lines_than_the_limit() -> None:
    meter = RateLimit(10)
    assert [meter.take(4, 0.0), meter.take(4, 1.0), meter.take(4, 2.0), meter.take(4, 3.0)] == [4, 4, 2, 0]
    assert meter.take(5, 59.9) == 0
    assert meter.take(5, 60.0) == 4
    assert meter.take(100, 61.0) == 4
    assert meter.take(100, 200.0) == 10


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=60), st.integers(1, 12))
def test_a_meter_grants_all_it_may_and_never_more(steps: list[tuple[int, int]], limit: int) -> None:
    meter, now = RateLimit(limit), 0.0
    granted: list[tuple[float, int]] = []
    for pause, lines in steps:
        now += pause
        lately = sum(number for when, number in granted if now - when < 60)
        given_now = meter.take(lines, now)
        assert given_now == min(lines, limit - lately)
        granted.append((now, given_now))
