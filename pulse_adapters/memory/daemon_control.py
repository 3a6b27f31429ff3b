"""The daemon as a background process and in the hands of a service manager, without either."""

from dataclasses import dataclass

from pulse_core.model.errors import HomeBusy, PulseError


class MemoryServiceManager:
    """Implements `pulse_core.ports.ServiceManager`; `told` is everything it heard, in order."""

    def __init__(self, watchdog_seconds: float | None = None) -> None:
        self._seconds = watchdog_seconds
        self.told: list[str] = []

    def watchdog_seconds(self) -> float | None:
        return self._seconds

    def extend_timeout(self) -> None:
        self.told.append("extend_timeout")

    def ready(self) -> None:
        self.told.append("ready")

    def reloading(self) -> None:
        self.told.append("reloading")

    def stopping(self) -> None:
        self.told.append("stopping")

    def watchdog(self) -> None:
        self.told.append("watchdog")


@dataclass
class MemoryBackgroundDaemon:
    """Implements `BackgroundDaemon`. options: what it was started with last."""

    pid: int | None = None
    options: tuple[str, ...] = ()

    def start(self, *options: str) -> int:
        if self.pid:
            raise HomeBusy("memory", self.pid)
        self.pid, self.options = 4711, options
        return self.pid

    def stop(self, patience: float) -> int | None:
        was, self.pid = self.pid, None
        return was


@dataclass
class MemoryDaemonUnit:
    """Implements `DaemonUnit`. installed: the path of the unit's file; active: whether it runs the daemon."""

    installed: str | None = None
    active: bool = False

    def path(self) -> str | None:
        return self.installed

    def is_active(self) -> bool:
        return self.installed is not None and self.active

    def install(self, user: bool) -> str:
        self.installed = "user/pulse.service" if user else "system/pulse.service"
        return self.installed

    def start(self) -> None:
        if self.installed is None:
            raise PulseError("no systemd unit serves this home")
        self.active = True

    def stop(self) -> None:
        self.start()
        self.active = False

    def restart(self) -> None:
        self.start()
