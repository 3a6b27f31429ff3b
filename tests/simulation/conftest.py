"""What long stories leave out."""

import pytest


@pytest.fixture
def rare_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Housekeeping once a minute: a story of a week is not about that, and it would take most of its time."""
    monkeypatch.setattr("pulse_core.daemon.housekeeping.INTERVAL", 60.0)
