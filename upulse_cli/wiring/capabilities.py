"""What of the capabilities is not pure: their watchers and executors, found by the capabilities' names."""

from collections.abc import Iterator, Sequence
from types import ModuleType

from pulse_core.capabilities import capability_modules
from pulse_core.capability import ExecutorContext, WatcherContext
from pulse_core.composition import LOADED
from pulse_core.ports.executor import Executor
from pulse_core.ports.watcher import Watcher


def watchers_of(context: WatcherContext) -> Sequence[Watcher]:
    """The capabilities' watchers: those that the core makes, and those of their adapters."""
    made = [watcher for capability in LOADED for watcher in capability.watchers(context)]
    return (*made, *(watcher for part in adapters("watchers") for watcher in part.watchers(context)))


def executors_of(context: ExecutorContext) -> Sequence[Executor]:
    """The capabilities' executors; raises TypeError if they are not those whose actions are declared."""
    made: list[Executor] = [one for part in adapters("executors") for one in part.executors(context)]
    actions = {action.name for capability in LOADED for action in capability.actions}
    if differing := {one.action for one in made} ^ actions:
        raise TypeError(
            f"an action is declared by a capability and made by its adapter; not so {sorted(differing)}"
        )
    return made


def adapters(part: str) -> Iterator[ModuleType]:
    """The packages `pulse_adapters.NAME` of capabilities that have one, with this function."""
    return (module for module in capability_modules("pulse_adapters") if hasattr(module, part))
