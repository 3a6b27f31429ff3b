"""Regular expressions from the settings: searched by RE2, in a time that grows linearly with the text.

Command lines and log lines are untrusted text, and Python's `re` takes exponential time on a crafted one:
`(a+)+$` on 40 times `a` and a `!`. RE2 runs all ways through the pattern at once. Therefore it has no lookahead, lookbehind
and back-references; a pattern that uses one is refused with a message that names what works instead.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pulse_core.model.errors import PulseError

LARGEST = 5_000
"""Instructions of RE2's program at most: at worst each takes two nanoseconds for each byte of the text."""

_MEMORY = 1 << 20  # bytes that RE2 may use for one pattern: its program and its cache of states
_PLAIN = re.compile(r"(\^?)((?:[^\\.^$*+?()\[\]{}|\ud800-\udfff]|\\[!-/:-@\[-^`{-~]|\[[ -,.-Z_-~]\])*)(\$?)")
_WHOLE_TEXT = re.compile(r"\\[Az]|\(\?\w*-")  # ends of the whole text, and flags that are taken back
_BACK = "uses a back-reference", "write the repeated text twice"
_INSTEAD = {
    "invalid perl operator: (?=": ("uses a lookahead", "write what follows into the pattern: 'first.*then'"),
    "invalid perl operator: (?!": ("uses a lookahead", "write what must be there, not what must not"),
    "invalid perl operator: (?<": (
        "uses a lookbehind",
        "write what comes before into the pattern: 'first.*then'",
    ),
    "invalid perl operator: (?P": _BACK,
    "invalid perl operator: (?(": ("uses a condition", "write both cases: '(one|other)'"),
    "invalid perl operator: (?>": ("uses an atomic group", "write '(?:...)'; no search takes long"),
    "invalid perl operator: (?#": ("holds a comment", "leave it out"),
    "invalid perl operator": ("sets a flag other than i, m and s", "leave it out"),
    "bad repetition operator": ("repeats a repetition", "write one of the two; no search takes long"),
    "invalid escape sequence: \\Z": ("uses \\Z", "write '\\z' for the end of the text"),
    "invalid escape sequence: \\u": ("uses \\u", "write the character itself, or '\\x{...}'"),
    "invalid escape sequence: \\U": ("uses \\U", "write the character itself, or '\\x{...}'"),
    **{f"invalid escape sequence: \\{digit}": _BACK for digit in range(1, 10)},
    "invalid repetition size": ("repeats more than 1000 times", "write '*' or '+'"),
    "pattern too large": ("is too large", "repeat less often, or write '*' or '+'"),
}
"""RE2's messages about unsupported syntax, by their beginning: what it is, and what works instead."""


class PatternRefused(PulseError, ValueError):
    """A text that is no regular expression, or one that RE2 does not support."""


class SearchPattern:
    """Finds a user's regular expression in texts, in time linear in their length. Raises PatternRefused.

    `.` and `[^a]` mean characters of UTF-8; `\\d`, `\\w`, `\\s` and `\\b` are about ASCII alone; `\\B` is also found
    between the bytes of a character that is not ASCII.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._search: Callable[[bytes], object]
        self._search_lines: Callable[[bytes], object] | None
        if plain := _PLAIN.fullmatch(text):
            self._search, self._search_lines = _plain_searches(*plain.groups())
        else:
            self._search = _compiled(text).search
            self._search_lines = None if _WHOLE_TEXT.search(text) else _compiled(f"(?m){text}").search

    def finds(self, raw: bytes) -> bool:
        """Whether it is found anywhere in the text; bytes that are no UTF-8 count as U+FFFD."""
        return bool(self._search(_utf_8(raw)))

    def may_find(self, lines: bytes) -> bool:
        """Whether it may be found in one of the lines: one search for all, since a call costs more than a search.

        With `^` and `$` at line breaks, what is found in a line is found in the whole; more may be, across the breaks.
        """
        return self._search_lines is None or bool(self._search_lines(_utf_8(lines)))


@lru_cache(maxsize=512)
def search_pattern(text: str) -> SearchPattern | None:
    """The pattern of a text, compiled once; None if RE2 does not support it: a home of an earlier version may have it."""
    try:
        return SearchPattern(text)
    except PatternRefused:
        return None


def _utf_8(raw: bytes) -> bytes:
    return raw if raw.isascii() else raw.decode("utf-8", "replace").encode()


def _plain_searches(
    start: str, middle: str, end: str
) -> tuple[Callable[[bytes], bool], Callable[[bytes], bool]]:
    """Searches of a text and of lines for what has no wildcard, only `^` and `$`: most patterns of most homes."""
    words = re.sub(r"\\(.)|\[(.)\]", lambda found: found[1] or found[2], middle).encode()
    in_lines = (b"\n" if start else b"") + words + (b"\n" if end else b"")

    def search(text: bytes) -> bool:
        if start:
            return text == words if end else text.startswith(words)
        return text.endswith(words) if end else words in text

    return search, lambda lines: in_lines in b"\n%b\n" % lines


def _compiled(text: str) -> Any:
    # Imported here, since it costs 10 ms and 3 MB, and many homes have no pattern with a wildcard.
    import re2

    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, _MEMORY
    try:
        compiled = re2.compile(text.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        message = error.args[0]
        words = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(error)
        raise PatternRefused(_refusal(text, words)) from error
    if compiled.programsize > LARGEST:
        raise PatternRefused(_refusal(text, "pattern too large"))
    return compiled


def _refusal(text: str, message: str) -> str:
    for beginning, (what, instead) in _INSTEAD.items():
        if message.startswith(beginning):
            return f"{text!r} {what}, which RE2 does not support; {instead}"
    return f"{text!r} is no regular expression: {message}"
