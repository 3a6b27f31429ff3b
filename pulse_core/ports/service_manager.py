"""The service manager above the daemon."""

from typing import Protocol


class ServiceManager(Protocol):
    """Tells whoever started the daemon how it is. Never raises, never blocks."""

    def watchdog_seconds(self) -> float | None:
        """How often at the latest it wants a sign of life, or None if it wants none."""
        ...

    def ready(self) -> None: ...

    def reloading(self) -> None: ...

    def stopping(self) -> None: ...

    def watchdog(self) -> None: ...
