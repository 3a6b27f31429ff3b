"""A regular expression that says for itself where it may be let loose."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pulse_adapters.host.effort import PARSER, Ground, counts, runs, steps
from pulse_adapters.host.proc import SEARCHED

MOST = 500_000
"""Steps that a search in the event loop may take, of one to nine nanoseconds each."""

_IDLE_HEAD = re.compile(r"\A(?:\.\*\??)+(?![*+?{])")
_IDLE_TAIL = re.compile(r"(?<!\\)(?:\.\*\??)+\Z")


class Expression:
    """Finds what `re.search` finds with this text; raises re.error if that is no regular expression."""

    def __init__(self, text: str) -> None:
        re.compile(text)
        self.text = _trimmed(text)
        self._shape = re.compile(self.text)
        self._tree = PARSER.parse(self.text) if PARSER else None
        self._needed = tuple(_needed(self._tree))
        self._short = self._longest_light()

    def misses(self, raw: bytes) -> bool:
        """Whether an argv as the kernel tells it lacks a word without which nothing is found."""
        for word in self._needed:  # noqa: SIM110 - any() and a generator would take twice as long
            if word not in raw:
                return True
        return False

    def search(self, line: str) -> bool:
        """Whether it is found; that may take for ever, unless it is light."""
        return self._shape.search(line) is not None

    def is_light(self, line: str) -> bool:
        """Whether a search in this line surely takes no more than MOST steps."""
        return len(line) <= self._short or steps(self._tree, Ground(len(line), line)) <= MOST

    def _longest_light(self) -> int:
        """The length up to which it is light whatever the line says; -1 if there is none."""
        light, heavy = -1, SEARCHED + 1
        while heavy - light > 1:
            middle = (light + heavy) // 2
            if steps(self._tree, Ground(middle)) <= MOST:
                light = middle
            else:
                heavy = middle
        return light


expression = lru_cache(maxsize=256)(Expression)
"""The expression of a text, made once."""


def _trimmed(text: str) -> str:
    """Without `.*` at its ends: it may match nothing, so what is found with it is found without it, but sooner."""
    return _IDLE_TAIL.sub("", _IDLE_HEAD.sub("", text))


def _needed(tree: Any) -> Iterator[bytes]:
    """The words of the literals without which nothing matches; the kernel has NULs where a line has blanks."""
    if tree is not None and counts(tree.state.flags):
        for literal, _ in runs(tree):
            yield from filter(None, map(_encoded, literal.split(" ")))


def _encoded(word: str) -> bytes:
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:
        return b""
