"""The service manager that started the daemon, as systemd."""

from typing import Protocol


class ServiceManager(Protocol):
    """Notifies the service manager of the daemon's state. Never raises, never blocks."""

    def watchdog_seconds(self) -> float | None:
        """The watchdog interval, or None without a watchdog."""

    def extend_timeout(self) -> None:
        """Still starting: give it more time. Called after real progress, from any thread."""

    def ready(self) -> None: ...

    def reloading(self) -> None: ...

    def stopping(self) -> None: ...

    def watchdog(self) -> None: ...
