"""What stories leave out that are not about it."""

import pytest


@pytest.fixture
def usual_rounds() -> None:
    """Housekeeping every second, and looks at the log's file every other one, for stories that may be about them."""


@pytest.fixture(autouse=True)
def rare_rounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both once a minute: a story of hours is mostly that."""
    if "usual_rounds" not in request.fixturenames:
        monkeypatch.setattr("pulse_core.daemon.housekeeping.INTERVAL", 60.0)
        monkeypatch.setattr("pulse_core.record.journal.CHECK_INTERVAL", 60.0)
