"""What the authors of an engine make besides rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulse_core.model.event import Event


@dataclass(frozen=True, slots=True)
class Projection:
    """An author's own fold over events, found in the snapshot as `curr.own[NAME]`.

    start: the value before the first event (what JSON can hold); step: the value after one more event, pure;
    version: raise it whenever the same events would give another value; kinds: the only ones that it wants.
    """

    start: Any
    step: Callable[[Any, Event], Any]
    version: int = 1
    kinds: frozenset[str] | None = None
