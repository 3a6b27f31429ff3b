"""Plugins, and projections that engine authors write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pulse_core.model.event import Event

if TYPE_CHECKING:  # a host's child process loads plugins without them
    from pulse_core.ports.executor import Executor
    from pulse_core.ports.watcher import Watcher
    from pulse_core.rules.onion import Rule


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


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a package adds to Pulse; an entry point of the group `pulse.plugins` names one.

    Its rules stand between survival's and the engine's, the first one outermost, and run in the rule host.
    """

    name: str
    rules: "Sequence[Rule]" = ()
    projections: Mapping[str, Projection] = field(default_factory=dict)
    watchers: "Sequence[Watcher]" = ()
    executors: "Sequence[Executor]" = ()
