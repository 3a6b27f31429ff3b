"""Settings: frozen values, one group for each package, read once at the edge and passed down.

Nothing here opens a file; the adapter `pulse_adapters.config` does, and reports every fault with its line.
"""

from pulse_core.model.durations import format_duration, parse_duration
from pulse_core.settings.durations import Duration
from pulse_core.settings.engine import RollbackSettings
from pulse_core.settings.groups import Bound
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.network import NetworkSettings
from pulse_core.settings.notify import NotifySettings
from pulse_core.settings.processes import ProcessSettings, RestartSettings
from pulse_core.settings.resources import DiskBound, ResourcesSettings, SessionsSettings
from pulse_core.settings.settings import (
    BudgetSettings,
    DaemonSettings,
    ExecutorsSettings,
    IntentSettings,
    RunCommandSettings,
    Settings,
    SocketSettings,
    WatchSettings,
)
from pulse_core.settings.telemetry import HeartbeatSettings, MetricsSettings, SelfSettings

__all__ = [
    "Bound",
    "BudgetSettings",
    "DaemonSettings",
    "DiskBound",
    "Duration",
    "ExecutorsSettings",
    "HeartbeatSettings",
    "IntentSettings",
    "LogSettings",
    "MetricsSettings",
    "NetworkSettings",
    "NotifySettings",
    "ProcessSettings",
    "ResourcesSettings",
    "RestartSettings",
    "RollbackSettings",
    "RunCommandSettings",
    "SelfSettings",
    "SessionsSettings",
    "Settings",
    "SocketSettings",
    "WatchSettings",
    "format_duration",
    "parse_duration",
]
