"""The core of Pulse: nouns, folds, rules and loops. It knows the outside only through `pulse_core.ports`.

Authors of rules import from here and from `pulse_core.testing`, and from nowhere else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulse_core.engine.plugin import Plugin, Projection
    from pulse_core.model.errors import PulseError
    from pulse_core.model.event import Event
    from pulse_core.model.kinds import Effect
    from pulse_core.model.moment import Moment
    from pulse_core.model.verdict import Verdict
    from pulse_core.model.vitals import Reading, Sample, Window
    from pulse_core.ports.executor import Executor, GivenUp, Policy, Result, Safety, Unsure
    from pulse_core.ports.watcher import Watcher
    from pulse_core.projections.state import Snapshot
    from pulse_core.rules.onion import Inner, Rule

__version__ = "0.1.0"

__all__ = [
    "Effect",
    "Event",
    "Executor",
    "GivenUp",
    "Inner",
    "Moment",
    "Plugin",
    "Policy",
    "Projection",
    "PulseError",
    "Reading",
    "Result",
    "Rule",
    "Safety",
    "Sample",
    "Snapshot",
    "Unsure",
    "Verdict",
    "Watcher",
    "Window",
]

_ROOMS = {
    "engine.plugin": ("Plugin", "Projection"),
    "model.errors": ("PulseError",),
    "model.event": ("Event",),
    "model.kinds": ("Effect",),
    "model.moment": ("Moment",),
    "model.verdict": ("Verdict",),
    "model.vitals": ("Reading", "Sample", "Window"),
    "ports.executor": ("Executor", "GivenUp", "Policy", "Result", "Safety", "Unsure"),
    "ports.watcher": ("Watcher",),
    "projections.state": ("Snapshot",),
    "rules.onion": ("Inner", "Rule"),
}


def __getattr__(name: str) -> Any:
    """A name for authors, imported when it is first asked for: the command line needs none of them."""
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"pulse_core.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
