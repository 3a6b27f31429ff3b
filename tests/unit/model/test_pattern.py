"""A user's regular expression finds what Python's `re` finds, in a time that grows linearly, or is refused with words."""

import re
import subprocess
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulse_core.model.pattern import LARGEST, PatternRefused, SearchPattern, search_pattern
from tests.long_form import sample

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
        r"\b",
        r"\B",
        r"\A",
        r"\.",
        "(?:a|b)",
        "(a)",
    ]
)
TIMES = st.sampled_from(["", "", "*", "+", "?", "*?", "{0,3}", "{2,}"])
WORDS = st.lists(st.tuples(PIECES, TIMES).map("".join), min_size=1, max_size=5).map("".join)
NESTED = st.one_of(WORDS, st.builds("({}){}".format, WORDS, TIMES), st.builds("{}|{}".format, WORDS, WORDS))
PATTERNS = st.builds("{}{}{}".format, st.sampled_from(["", "", "(?i)", "(?s)"]), NESTED, NESTED)


def compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
        SearchPattern(pattern)
    except (re.error, PatternRefused):
        return False
    return True


@settings(max_examples=sample(60, 1_000))
@given(
    st.lists(st.sampled_from(["a", "é", " ", r"\.", "[.]", r"\+", r"\\"]), max_size=3).map("".join),
    st.sampled_from(["{}", "^{}", "{}$", "^{}$"]),
    st.text(alphabet="aé.+\\ ", max_size=4),
)
def test_a_pattern_without_wildcards_finds_what_re_finds(words: str, ends: str, line: str) -> None:
    pattern = ends.format(words)
    expected = re.search(pattern, line) is not None
    assert SearchPattern(pattern).finds(line.encode()) is expected
    assert SearchPattern(pattern).may_find(f"x\n{line}\nx".encode()) is (
        re.search(f"(?m){pattern}", f"x\n{line}\nx") is not None
    )


def test_a_pattern_without_wildcards_needs_no_re2() -> None:
    code = (
        "import sys; from pulse_core.model import pattern; "
        "pattern.SearchPattern('^a[.]b$'); assert 're2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@settings(max_examples=sample(60, 1_000))
@given(PATTERNS.filter(compiles), st.text(alphabet="aAbBé. x", min_size=1, max_size=12))
@example(r".*Main", "java é Main")
def test_it_finds_what_re_finds_with_the_classes_of_ascii(pattern: str, line: str) -> None:
    if r"\B" in pattern:
        line = line.replace("é", ".")  # RE2 looks between bytes, so it finds \B inside of such a character
    expected = re.search(re.sub(r"\\[wSbB]", lambda found: f"(?a:{found[0]})", pattern), line) is not None
    search = SearchPattern(pattern)
    assert search.finds(line.encode()) is expected
    assert search.may_find(f"x{line}x\n{line}\n".encode()) or not expected


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"(a+)+$", "a" * 4_000 + "!"),
        (r"(a|a)*b", "a" * 4_000),
        (r"(?:a?){400}a{400}b", "a" * 4_000),
        (r"(\w+\s?)*x", "a" * 4_000),
        (r"java .*Main.*--port x", "java Main --port " * 240),
        (r".{0,500}x", "abd" * 1_300),
    ],
)
def test_no_line_takes_long(pattern: str, line: str) -> None:
    search, raw = SearchPattern(pattern), line.encode()
    began = time.thread_time()
    assert not search.finds(raw)
    assert time.thread_time() - began < 0.2


def test_in_several_lines_it_may_be_found_only_if_it_is_found_in_one_of_them_or_across() -> None:
    assert SearchPattern("^ab$").may_find(b"x\nab\ny")
    assert not SearchPattern("^ab$").may_find(b"xab\naby")
    assert SearchPattern(r"\Aab\z").may_find(b"it looks at whole texts alone")


def test_what_is_no_utf_8_counts_as_a_character() -> None:
    assert SearchPattern("a.b$").finds(b"a\xffb")
    assert not SearchPattern("a.b$").finds(b"a\xff\xffb")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "'(' is no regular expression: missing )"),
        ("java(?!.*test)", "uses a lookahead, which RE2 does not support; write what must be there"),
        ("a(?=b)", "uses a lookahead, which RE2 does not support; write what follows into the pattern"),
        ("(?<=a)b", "uses a lookbehind, which RE2 does not support; write what comes before"),
        (r"(a)\1", "uses a back-reference, which RE2 does not support; write the repeated text twice"),
        ("(?P<x>a)(?P=x)", "uses a back-reference"),
        ("(a)?(?(1)b|c)", "uses a condition, which RE2 does not support; write both cases"),
        ("(?>a+)", "uses an atomic group"),
        ("a++", "repeats a repetition"),
        ("a(?#why)", "holds a comment, which RE2 does not support; leave it out"),
        ("(?x) a", "sets a flag other than i, m and s"),
        (r"a\Z", r"uses \Z, which RE2 does not support; write '\z'"),
        (r"\u00e9", r"uses \u, which RE2 does not support; write the character itself"),
        ("a{1001}", "repeats more than 1000 times, which RE2 does not support; write '*' or '+'"),
        (".{0,1000}", "is too large, which RE2 does not support; repeat less often"),
        (f"a{{{LARGEST // 10}}}" * 11, "is too large"),
        ("\ud800", "is no regular expression"),
    ],
)
def test_what_is_not_supported_is_refused_with_what_works(pattern: str, words: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        SearchPattern(pattern)
    assert words in str(caught.value)
    assert search_pattern(pattern) is None


def test_a_refusal_writes_nothing_to_standard_error_and_an_import_alone_loads_no_re2() -> None:
    program = (
        "import sys; from pulse_core.model.pattern import search_pattern; assert 're2' not in sys.modules;"
        "assert search_pattern('(?=a)') is None; assert 're2' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
