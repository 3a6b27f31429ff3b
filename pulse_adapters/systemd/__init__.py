"""systemd, as the manager that runs the daemon: its notify socket, our unit file, and systemctl.

Nothing here decides when to start or stop, and nothing here guards processes: units that Pulse guards are
`pulse_adapters.host`'s business.
"""

from pulse_adapters.systemd.manager import (
    Unit,
    install,
    installed,
    is_active,
    lingers,
    reload,
    restart,
    start,
    stop,
    systemctl,
    uninstall,
    units,
)
from pulse_adapters.systemd.notify import Notifier
from pulse_adapters.systemd.unit import UNIT_NAME, served_home, unit_name, unit_text

__all__ = [
    "UNIT_NAME",
    "Notifier",
    "Unit",
    "install",
    "installed",
    "is_active",
    "lingers",
    "reload",
    "restart",
    "served_home",
    "start",
    "stop",
    "systemctl",
    "uninstall",
    "unit_name",
    "unit_text",
    "units",
]
