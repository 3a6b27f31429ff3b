"""Values some at a time: as many as a commit, an event or a turn of the loop may have."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_batches(
    values: Iterable[T], most: int, size: Callable[[T], int] | None = None, largest: int = 0
) -> Iterator[list[T]]:
    """The values in their order, taken as they are needed, no more than `most` at once.

    size: of a value; no more than `largest` are together then, but one that is larger by itself.
    """
    values = iter(values)
    while size is None:
        if not (found := list(islice(values, most))):
            return
        yield found
    batch: list[T] = []
    whole = 0
    for value in values:
        own = size(value)
        if batch and (len(batch) == most or whole + own > largest):
            yield batch
            batch, whole = [], 0
        batch.append(value)
        whole += own
    if batch:
        yield batch
