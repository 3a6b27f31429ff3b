"""Settings are decisions: frozen values, one group a room, read once at the edge and passed down.

Nothing here opens a file; the adapter `pulse_adapters.config` does, and tells every fault with its line.
"""

from pulse_core.settings.durations import Duration, parse_duration, spell_duration
from pulse_core.settings.processes import ProcessSettings, RestartSettings
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

__all__ = [
    "BudgetSettings",
    "DaemonSettings",
    "Duration",
    "ExecutorsSettings",
    "IntentSettings",
    "ProcessSettings",
    "RestartSettings",
    "RunCommandSettings",
    "Settings",
    "SocketSettings",
    "WatchSettings",
    "parse_duration",
    "spell_duration",
]
