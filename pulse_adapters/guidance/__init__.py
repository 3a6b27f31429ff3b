"""Guidance on this machine: the files of projects, what tells that they have changed, and the MCP server for agents."""

from collections.abc import Sequence

from pulse_core.capability import WatcherContext
from pulse_core.guidance.projection import GUIDANCE
from pulse_core.ports.watcher import Watcher
from pulse_core.watch.on_demand import WatcherOnDemand


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of the projects that were added."""

    def is_needed() -> bool:
        return bool(context.state().of(GUIDANCE).projects)

    def make() -> Watcher:
        from pulse_adapters.guidance.watcher import GuidanceWatcher

        return GuidanceWatcher(context)

    return (WatcherOnDemand("guidance", context, GUIDANCE.kinds, is_needed, make),)
