"""Remembers what was computed of objects that are replaced, and never changed, until one of them is another."""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Memo(Generic[P, T]):
    """A function of such objects that is computed anew only for others than the last time; `is` compares them."""

    def __init__(self, compute: Callable[P, T]) -> None:
        self._compute = compute
        self._last: tuple[tuple[object, ...], T] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """The value for these."""
        given, last = (*args, *kwargs.values()), self._last
        if last is None or any(one is not other for one, other in zip(given, last[0], strict=True)):
            last = self._last = given, self._compute(*args, **kwargs)
        return last[1]
