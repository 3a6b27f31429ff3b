"""One projection: a pure fold over the events of some kinds, with a version of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from pulse_core.model.event import Event

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Projection(Generic[T]):
    """What one fold needs: raise `version` whenever the same events would give another value, and old checkpoints go.

    name: under which it is checkpointed and shown; type: of its value, which is empty when made without arguments;
    kinds: the events that may change it; `after` also gets others, and ignores them.
    """

    name: str
    version: int
    type: type[T]
    kinds: frozenset[str]
    after: Callable[[T, Iterable[Event]], T]

    @cached_property
    def empty(self) -> T:
        """The value before the first event."""
        return self.type()

    def dump(self, value: T) -> str:
        """The value as JSON text."""
        return self._adapter.dump_json(value).decode()

    def load(self, text: str | bytes) -> T:
        """The value from `dump`'s text; raises ValueError if it is not one."""
        return self._adapter.validate_json(text)

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.type)
