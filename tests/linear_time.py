"""Texts that make a regular expression slow, and whether one takes longer than in proportion to their length."""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from time import thread_time
from typing import Any

LENGTHS = (20, 400, 5_000)
"""Exponential time shows in the first, cubic in the second, quadratic in the third: 12 million steps."""
QUICK = 0.002
"""Seconds of CPU time for 5,000 characters below which nobody asks further."""
_LINEAR = re.compile(r"([0-9]{1,30})(xy|z)"), "1" * LENGTHS[-1]
MOST = 3.0
"""Times as long as this one, which goes thirty steps for each character, measured at the same time: none that is linear here
takes more than 1.6 times as long, and a quadratic one ten times."""
TRIES = 7
_PLAIN = ("a", "1", " ", "-", ":", "@", "\n")
_CATEGORIES = {sre.CATEGORY_DIGIT: "1", sre.CATEGORY_WORD: "a", sre.CATEGORY_SPACE: " "}


def slow_text(search: Callable[[Any], object], pattern: str | bytes, flags: int = 0) -> str:
    """The first of the texts made from the pattern that it searches in more than linear time; empty if there is none."""
    for prefix, piece in _attacks(pattern, flags):
        for length in LENGTHS:
            text = (prefix + piece * (length // len(piece)))[: length - 1] + "\x01"
            given = text.encode() if isinstance(pattern, bytes) else text
            if _is_slow(search, given):
                return f"{prefix!r} and {length} characters of {piece!r}"
    return ""


def _is_slow(search: Callable[[Any], object], text: str | bytes) -> bool:
    """Whether the fastest of a few searches is slow beside the fastest linear one: on a busy machine both are slower."""
    expression, digits = _LINEAR
    least = linear = float("inf")
    for _ in range(TRIES):
        least = min(least, _seconds(search, text))
        if least < QUICK:
            return False
        linear = min(linear, _seconds(expression.findall, digits))
    return least > MOST * linear


def _seconds(search: Callable[[Any], object], text: Any) -> float:
    begin = thread_time()
    search(text)
    return thread_time() - begin


def _attacks(pattern: str | bytes, flags: int) -> Iterator[tuple[str, str]]:
    spelled = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    words = list(_words(_parser.parse(spelled, flags & ~re.LOCALE)))
    pieces = list(dict.fromkeys((*words[:8], *_PLAIN, *words[8:])))[:24]
    prefixes = list(dict.fromkeys(("", *accumulate(words[:8]))))
    yield from product(prefixes, pieces)
    yield from (("", one + other) for one, other in product(pieces[:14], pieces[:14]))


def _words(tree: Any) -> Iterator[str]:
    """Texts that its parts match, in their order: runs of literals, and one character of each class."""
    run = ""
    for code, value in tree:
        if code is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
        run = ""
        if code is sre.IN:
            yield from (char for one in value if (char := _sample(*one)))
        elif code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            for word in _words(value[2]):
                yield word * max(1, min(value[0], 40))
        elif code is sre.BRANCH:
            for branch in value[1]:
                yield from _words(branch)
        elif code in (sre.SUBPATTERN, sre.ATOMIC_GROUP, sre.ASSERT, sre.ASSERT_NOT):
            yield from _words(value if code is sre.ATOMIC_GROUP else value[-1])
    if run:
        yield run


def _sample(code: Any, value: Any) -> str:
    if code is sre.LITERAL:
        return chr(value)
    if code is sre.RANGE:
        return chr(value[0])
    return _CATEGORIES.get(value, "") if code is sre.CATEGORY else ""
