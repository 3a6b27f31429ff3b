"""A service manager that writes down what it was told."""


class MemoryServiceManager:
    """Implements `pulse_core.ports.ServiceManager`; `told` is everything it heard, in order."""

    def __init__(self, watchdog_seconds: float | None = None) -> None:
        self._seconds = watchdog_seconds
        self.told: list[str] = []

    def watchdog_seconds(self) -> float | None:
        return self._seconds

    def ready(self) -> None:
        self.told.append("ready")

    def reloading(self) -> None:
        self.told.append("reloading")

    def stopping(self) -> None:
        self.told.append("stopping")

    def watchdog(self) -> None:
        self.told.append("watchdog")
