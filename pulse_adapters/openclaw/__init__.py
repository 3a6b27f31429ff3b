"""OpenClaw's files on this machine: its config, of which good ones are kept in the home, and its sessions."""

from collections.abc import Sequence

from pulse_adapters.openclaw.executor import RestoreConfig
from pulse_adapters.openclaw.watcher import OpenClawWatcher
from pulse_core.capability import ExecutorContext, WatcherContext
from pulse_core.ports.executor import Executor
from pulse_core.ports.watcher import Watcher


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of gateways' files."""
    return (OpenClawWatcher(context),)


def executors(context: ExecutorContext) -> Sequence[Executor]:
    """What puts a config back."""
    return (RestoreConfig(context),)
