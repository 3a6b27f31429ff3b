"""What a daemon senses of this machine and of what is outside it."""

from collections.abc import Callable, Mapping, Sequence

from pulse_adapters.host.system_watcher import SystemHistory, SystemResource
from pulse_adapters.logs.reader import FollowedLogs
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.capability import WatcherContext
from pulse_core.model.vitals import Window
from pulse_core.ports import Prober, Watcher
from pulse_core.watch.error_log import ErrorLog
from pulse_core.watch.network import Network
from upulse_cli.wiring.capabilities import watchers_of
from upulse_cli.wiring.daemon_context import DaemonContext
from upulse_cli.wiring.executors import MachineExecutors

Windows = Callable[[], Mapping[str, Window]]
"""The windows of every sense, as they are now."""


def system_watcher(
    shared: DaemonContext, acting: MachineExecutors, windows: Windows, lateness: Callable[[], float]
) -> SystemResource:
    """The machine itself; lateness: of the daemon's loop since it was last asked, seconds."""
    before = SystemHistory(shared.view, lambda: windows().get(SystemResource.key, Window()))
    return SystemResource(
        shared.current_settings, lambda: lateness() * 1000, acting.spawner, acting.consumers, before
    )


def outward_watchers(
    shared: DaemonContext, logs: FollowedLogs, prober: ChildProber, vitals: SqliteVitals, windows: Windows
) -> Sequence[Watcher]:
    """The logs that are followed, and the network."""
    error_log = ErrorLog(logs, shared.clock, shared.current_settings, shared.view, vitals.newest)
    return (error_log, *network_watchers(prober, shared, windows))


def network_watchers(
    prober: Prober, shared: DaemonContext, windows: Callable[[], Mapping[str, Window]]
) -> Sequence[Watcher]:
    """The senses that ask the network, the capabilities' too; what has no targets asks nothing."""

    def window(key: str) -> Window:
        return windows().get(key, Window())

    network = Network(prober, shared.current_settings, shared.view, lambda: window(Network.key))
    context = WatcherContext(prober, shared.clock, shared.current_settings, shared.view, window)
    return (network, *watchers_of(context))
