"""What starts and stops a daemon promises: as a process in the background, by a unit of systemd, and in memory."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.daemon_process import DaemonProcess
from pulse_adapters.memory.daemon_control import MemoryBackgroundDaemon, MemoryDaemonUnit
from pulse_adapters.systemd import manager
from pulse_adapters.systemd.manager import SystemdUnit
from pulse_core.app.daemon_control import BackgroundDaemon, DaemonUnit
from pulse_core.model.errors import HomeBusy, PulseError

SYSTEMCTL = """#!/bin/sh
# A manager that knows one unit: started is a file.
for word; do case $word in
    start|restart) exec touch {state} ;;
    stop) exec rm -f {state} ;;
    is-active) exec test -e {state} ;;
esac; done
"""


@pytest.fixture(params=["memory", "process"])
def background(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BackgroundDaemon]:
    if request.param == "memory":
        yield MemoryBackgroundDaemon()
        return
    home = Home(tmp_path / "home")
    home.create()
    home.config.write_text("# the defaults\n")
    process = DaemonProcess(home, str, lambda words: None)
    yield process
    process.stop(30.0)


@pytest.fixture(params=["memory", "systemd"])
def unit(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DaemonUnit:
    if request.param == "memory":
        return MemoryDaemonUnit()
    (tmp_path / "home").mkdir()
    (tmp_path / "systemctl").write_text(SYSTEMCTL.format(state=tmp_path / "active"))
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(manager, "_BOOTED", tmp_path)
    return SystemdUnit(tmp_path / "home")


def test_a_background_daemon_is_started_once_and_stopped_once(background: BackgroundDaemon) -> None:
    assert background.stop(30.0) is None
    pid = background.start()
    with pytest.raises(HomeBusy, match=str(pid)):
        background.start()
    assert background.stop(30.0) == pid
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    assert background.stop(30.0) is None


def test_without_a_unit_nothing_can_be_done_with_it(unit: DaemonUnit) -> None:
    assert (unit.path(), unit.is_active()) == (None, False)
    for verb in (unit.start, unit.stop, unit.restart):
        with pytest.raises(PulseError, match="no systemd unit"):
            verb()


def test_a_unit_is_installed_without_being_started_and_does_as_it_is_told(unit: DaemonUnit) -> None:
    assert unit.install(user=True) == unit.path()
    assert not unit.is_active()
    for verb, active in ((unit.start, True), (unit.stop, False), (unit.restart, True)):
        verb()
        assert unit.is_active() is active
    assert unit.install(user=True) == unit.path()
    assert unit.is_active()
