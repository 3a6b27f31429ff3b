"""Runs a coroutine and does something around each of its steps, which is all that runs between two pauses."""

import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

B = TypeVar("B")
T = TypeVar("T")


async def run_in_steps(work: Coroutine[Any, Any, T], begin: Callable[[], B], end: Callable[[B], None]) -> T:
    """The coroutine's result. begin: called before each step; end: after it, with what `begin` returned."""
    result: T = await _steps(work, begin, end)
    return result


@types.coroutine
def _steps(
    work: Coroutine[Any, Any, T], begin: Callable[[], B], end: Callable[[B], None]
) -> Generator[Any, Any, T]:
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        begun = begin()
        try:
            awaited = step()
        except StopIteration as done:
            returned: T = done.value
            return returned
        finally:
            end(begun)
        try:
            step = partial(work.send, (yield awaited))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is meant for `work`
            step = partial(work.throw, error)
