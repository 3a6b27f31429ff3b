"""Patterns of keys with `*`, `?` and `[...]` as in a shell: searched by RE2, so that no pattern takes long.

A pattern may come from anybody who may append to the log, and an old log may hold any: `fnmatch` takes seconds to read
one of 10 KB, on the daemon's loop.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from pulse_core.model.pattern import PatternRefused, SearchPattern

LONGEST = 500
"""Characters of a pattern at most, as of the keys that it is about."""

WILDCARDS = 50
"""Wildcards of a pattern at most: with more it takes milliseconds to read."""

PATTERNS = 1_024
"""Patterns that are kept as read: more than there may be silences, windows and routes of notices together. Where one fell
out before it was asked again, each was read anew for each effect, which takes a millisecond."""

_CLASS = re.compile(r"\[(!?+)(\]?+[^\]]*)\]", re.DOTALL)
_ITEM = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_NOTHING = r"[^\x{0}-\x{10FFFF}]"


def glob_fault(pattern: str) -> str:
    """Why the pattern matches nothing at all; empty if it may match."""
    return _size_fault(pattern) or ("" if usable_pattern(pattern) else "it can't be read as a pattern")


def _size_fault(pattern: str) -> str:
    if not 0 < len(pattern) <= LONGEST:
        return f"it has {len(pattern):,} characters, not 1 to {LONGEST}"
    count = sum(map(pattern.count, "*?["))
    return f"it has {count} wildcards; at most {WILDCARDS} are read" if count > WILDCARDS else ""


def glob_matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text; one with a fault matches nothing."""
    search = usable_pattern(pattern)
    return search is not None and search.finds(text.encode("utf-8", "replace"))


@lru_cache(maxsize=PATTERNS)
def usable_pattern(pattern: str) -> SearchPattern | None:
    """The pattern as it is searched; None if it has a fault, and matches nothing."""
    return None if _size_fault(pattern) else _search(pattern)


def _search(pattern: str) -> SearchPattern | None:
    middle = pattern.strip("*")
    if not middle:
        return SearchPattern("")
    start, end = "" if pattern[0] == "*" else "^", "" if pattern[-1] == "*" else "$"
    body = "".join(_translated(middle))
    flags = "(?s)" if "*" in middle or "?" in middle else ""
    try:
        return SearchPattern(f"{flags}{start}{body}{end}")
    except PatternRefused:
        return None


def _translated(middle: str) -> Iterator[str]:
    place = 0
    while place < len(middle):
        char = middle[place]
        if char == "[" and (found := _CLASS.match(middle, place)):
            yield _class(*found.groups())
            place = found.end()
            continue
        if char == "*":
            yield ".*"
        else:
            yield "." if char == "?" else _escaped(char)
        place += 1


def _class(negated: str, chars: str) -> str:
    items = "".join(_items(chars))
    if not items:
        return "." if negated else _NOTHING
    return f"[{'^' if negated else ''}{items}]"


def _items(chars: str) -> Iterator[str]:
    for first, last, one in _ITEM.findall(chars):
        if one:
            yield _code(one)
        elif first <= last:
            yield f"{_code(first)}-{_code(last)}"


def _code(char: str) -> str:
    return rf"\x{{{ord(char):x}}}"


def _escaped(char: str) -> str:
    return re.escape(char) if char.isascii() and char.isprintable() else char
