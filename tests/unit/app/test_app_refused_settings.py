"""New settings that were refused stay in the status until good ones are in force."""

from pulse_core.app.compute_status import Beat, compute_status
from pulse_core.composition import FOLD
from pulse_core.model.home_status import DaemonStatus, HomeStatus
from pulse_core.model.kinds import DaemonStarted, DaemonStopped, SettingsLoaded, SettingsRejected
from pulse_core.model.moment import Moment
from pulse_core.model.payload import Payload
from pulse_core.projections.control import LONGEST_FAULT, MOST_FAULTS
from pulse_core.settings.settings import Settings
from tests.events import event

NOW = Moment(10**15, "boot", 10**9)
LOADED = SettingsLoaded(digest="0" * 64)
REFUSED = SettingsRejected(faults=("config.toml:3: no",))


DAEMON: DaemonStatus = {"state": "running", "pid": 1, "since": None, "version": "1"}


def status_after(*payloads: Payload) -> HomeStatus:
    events = [event(seq, payload) for seq, payload in enumerate(payloads, 1)]
    state = FOLD(FOLD.start, events)
    return compute_status(Settings(), state, NOW, Beat(), DAEMON, {})


def test_refused_settings_are_told_until_others_are_loaded() -> None:
    started = DaemonStarted(pid=1, version="1")
    assert "settings_refused" not in status_after(started, LOADED)
    assert status_after(started, LOADED, REFUSED)["settings_refused"] == REFUSED.faults
    assert "settings_refused" not in status_after(started, LOADED, REFUSED, LOADED)


def test_a_stopped_daemon_has_refused_nothing() -> None:
    stopped = DaemonStopped(pid=1, reason="asked to stop")
    assert "settings_refused" not in status_after(DaemonStarted(pid=1, version="1"), REFUSED, stopped)


def test_what_is_kept_of_refused_settings_is_bounded() -> None:
    faults = status_after(SettingsRejected(faults=("x" * 10_000,) * 100))["settings_refused"]
    assert faults == ("x" * LONGEST_FAULT,) * MOST_FAULTS
