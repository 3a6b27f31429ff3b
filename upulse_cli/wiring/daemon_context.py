"""What the parts of one daemon share, and who is told of what fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulse_adapters.config.file import load, load_to_start
from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.objects.files import FileObjects
from pulse_core.daemon import CurrentSettings
from pulse_core.record.view import View

Failed = Callable[[str, str], None]
"""Is told whose failure it was, and what failed."""


@dataclass(frozen=True)
class DaemonContext:
    """What the parts of one daemon share. faults: of its settings, such as keep no daemon from starting."""

    home: Home
    clock: SystemClock
    objects: FileObjects
    view: View
    current_settings: CurrentSettings
    faults: Sequence[str]


def daemon_context(home: Home) -> DaemonContext:
    """The ground of a daemon that starts; raises SettingsRefused. Later settings must be without any fault."""
    settings, faults = load_to_start(home.config)
    first = [settings]
    current_settings = CurrentSettings(lambda: first.pop() if first else load(home.config))
    return DaemonContext(home, SystemClock(), FileObjects(home.objects), View(), current_settings, faults)
