"""What long stories leave out."""

import pytest


@pytest.fixture
def rare_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Housekeeping and looks at the log's file once a minute: stories of weeks are about neither, and mostly that."""
    monkeypatch.setattr("pulse_core.daemon.housekeeping.INTERVAL", 60.0)
    monkeypatch.setattr("pulse_core.record.journal.CHECK_INTERVAL", 60.0)
