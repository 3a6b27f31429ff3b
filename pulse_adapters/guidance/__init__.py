"""Guidance on this machine: the files of projects, what tells that they have changed, and the MCP server for agents."""

from collections.abc import Sequence

from pulse_core.capability import WatcherContext
from pulse_core.ports.watcher import Watcher


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of the projects that were added."""
    from pulse_adapters.guidance.watcher import GuidanceWatcher

    return (GuidanceWatcher(context),)
