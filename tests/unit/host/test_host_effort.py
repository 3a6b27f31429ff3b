"""Where a regular expression may be let loose, and that this changes nothing of what it finds."""

import os
import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pulse_adapters.host.command_lines import text
from pulse_adapters.host.expression import Expression
from pulse_adapters.host.proc import SEARCHED

JARS = ":".join(f"/opt/app/lib/part-{number}.jar" for number in range(140))
JAVA = f"/usr/bin/java -Xmx2g -cp {JARS} com.acme.Main --port 80"
ORDINARY = (
    r"worker\.py",
    r"^python3? -m http\.server",
    r"(^|/)java( |$)",
    r"java .*com\.acme\.Main",
    r".*com\.acme\.Main.*",
    r"java .*-Xmx2g.*com\.acme\.Main --port",
    r"\bjava\b.*-cp .*Main.*--port \d+$",
    r"java(?!.*test).*Main",
    r"com\.acme\.(Main|Other)",
)


@pytest.mark.parametrize("pattern", ORDINARY)
def test_an_ordinary_pattern_is_light_on_an_honest_line_however_long(pattern: str) -> None:
    assert 3_000 < len(JAVA) < SEARCHED
    assert Expression(pattern).is_light(JAVA)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"(a+)+$", "a" * 30),
        (r"(a|a)*b", "a" * 30),
        (r"(?:a?){40}a{40}", "a" * 40),
        (r"(\w+\s?)*x", "a" * 40),
        (r"(?=(a+)+$)", "a" * 30),
        (r"(.*)\1\1b", "a" * SEARCHED),
        (r"java .*com\.acme\.Main.*--port x", ("java com.acme.Main --port " * 200)[:SEARCHED]),
        (r"\S+worker", "a" * SEARCHED),
        (r"(?i)java.*main.*x", "JAVA MAIN " * 400),
    ],
)
def test_what_may_be_long_is_not_light(pattern: str, line: str) -> None:
    assert not Expression(pattern).is_light(line)


PIECES = st.sampled_from(
    [
        "a",
        "b",
        " ",
        ".",
        r"\w",
        r"\S",
        "[ab]",
        "[^b]",
        "é",
        "ab",
        r"\b",
        "^",
        "$",
        r"\.",
        "(?:a|b)",
        "(a)",
        "(?!b)",
    ]
)
TIMES = st.sampled_from(["", "", "*", "+", "?", "*?", "{0,3}", "{2,}", "*+"])
QUANTIFIED = st.tuples(PIECES, TIMES).map("".join)
WORDS = st.lists(QUANTIFIED, min_size=1, max_size=5).map("".join)
NESTED = st.one_of(WORDS, st.builds("({}){}".format, WORDS, TIMES), st.builds("{}|{}".format, WORDS, WORDS))
ENDS = st.sampled_from(["", "", "", ".*", ".*?", r"\.*", r"\\.*", ".*.*"])
FLAGS = st.sampled_from(["", "", "(?i)", "(?s)"])
PATTERNS = st.builds("{}{}{}{}{}".format, FLAGS, ENDS, NESTED, NESTED, ENDS)
LINES = st.text(alphabet="aAbBé. \n\udce9x", max_size=30)


def compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(PATTERNS.filter(compiles), LINES)
@example(r".*\.*", "")
@example(r".*|b", "a")
@example(r".*+b", "ab")
@example(r"a b", "a b")
def test_what_it_finds_is_what_re_finds(pattern: str, line: str) -> None:
    expression = Expression(pattern)
    raw = os.fsencode(line).replace(b" ", b"\0") + b"\0"
    assert text(raw) == line
    assume(expression.is_light(line))  # else `re` itself might take for ever here
    found = re.search(pattern, line) is not None
    assert expression.search(line) is found
    assert not (found and expression.misses(raw))


@pytest.mark.wall_clock
@settings(max_examples=300, deadline=None)
@given(PATTERNS.filter(compiles), st.sampled_from(["a", "ab", "é", "a b ", "aaab"]), st.integers(1, SEARCHED))
def test_what_is_light_is_soon_over(pattern: str, unit: str, length: int) -> None:
    expression, line = Expression(pattern), (unit * length)[:length]
    if expression.is_light(line):
        began = time.thread_time()
        expression.search(line)
        assert time.thread_time() - began < 0.05


def test_a_literal_that_no_argv_can_hold_does_no_harm() -> None:
    assert not Expression("\ud800x").misses(b"x\0")


def test_a_broken_expression_says_so() -> None:
    with pytest.raises(re.error, match="unterminated"):
        Expression("(a.*")
