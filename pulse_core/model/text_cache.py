"""Keeps what a function of a text comes to, for as many characters as may be kept, not for so many texts.

Effects are written by rules, and may be long: a thousand of them, decoded, took gigabytes.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 1_000_000
"""Characters: five times what effects of rules that are open at a time may have."""
_EACH = 100
"""What a text costs beside its own characters."""


class cached_by_text(Generic[T]):
    """The function, which is asked once for each text; when too much is kept, all of it is forgotten."""

    __slots__ = ("_function", "_kept", "_room")

    def __init__(self, function: Callable[[str], T]) -> None:
        self._function = function
        self._kept: dict[str, T] = {}
        self._room = MOST

    def __call__(self, text: str) -> T:
        try:
            return self._kept[text]
        except KeyError:
            found = self._function(text)
        self._room -= (size := len(text) + _EACH)
        if self._room < 0:
            self.cache_clear()
            self._room -= size
        self._kept[text] = found
        return found

    def cache_clear(self) -> None:
        """Forget all of it."""
        self._kept.clear()
        self._room = MOST
