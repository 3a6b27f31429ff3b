"""Patterns of keys: as in a shell, and never slow, whoever wrote them."""

from fnmatch import fnmatchcase
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.glob import LONGEST, WILDCARDS, glob_fault, glob_matches

ALPHABET = "ab.*?[]!\\\né"


@given(st.text(ALPHABET, min_size=1, max_size=8), st.text(ALPHABET, max_size=6))
def test_a_pattern_matches_what_it_matches_in_a_shell(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) == fnmatchcase(text, pattern)


@pytest.mark.parametrize("pattern", ["[a-c]", "[!a-c]", "[a-]", "[]-a]", "[c-a]", "[!c-a]", "x[--a]"])
def test_ranges_match_what_they_match_in_a_shell(pattern: str) -> None:
    texts = ("", *"abc-]!^xd", "xa", "x-", "é")
    assert [glob_matches(pattern, text) for text in texts] == [fnmatchcase(text, pattern) for text in texts]


@pytest.mark.parametrize("pattern", ["", "a" * (LONGEST + 1), "[!" * 50_000, "*a" * (WILDCARDS + 1)])
def test_a_pattern_with_a_fault_matches_nothing_and_says_so(pattern: str) -> None:
    assert glob_fault(pattern)
    assert not glob_matches(pattern, pattern)


def test_no_pattern_takes_long() -> None:
    began = process_time()
    for pattern in ("[!" * 50_000, "*a*a" * 2_000, "*a" * WILDCARDS, "[!" * WILDCARDS, "*" + "?" * 49 + "b"):
        for number in range(10):
            glob_matches(pattern + str(number), "a" * LONGEST)
    assert process_time() - began < 1
