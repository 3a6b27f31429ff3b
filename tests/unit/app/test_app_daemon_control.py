"""Starting and stopping the daemon: by its unit where there is one, else as a process in the background."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pulse_adapters.memory.daemon_control import MemoryBackgroundDaemon, MemoryDaemonUnit
from pulse_core.app.daemon_control import DaemonControl
from pulse_core.model.errors import PulseError


class Machine:
    """A machine with a home, whose daemon runs in the background or by a unit."""

    def __init__(self, unit: str | None = None, active: bool = False, pid: int | None = None) -> None:
        self.background, self.unit = MemoryBackgroundDaemon(pid), MemoryDaemonUnit(unit, active)
        self.said: list[str] = []
        self.ended: list[int | None] = []
        self.held: dict[str, int] = {}
        self.is_end_recorded, self.is_log_there = False, True
        self.lost: int | None = None
        self.control = DaemonControl(
            background=self.background,
            unit=self.unit,
            is_held=lambda: self.background.pid is not None or self.unit.is_active(),
            lost=lambda: self.lost,
            stop_grace=lambda: 1.0,
            set_up_account=lambda: "Rules of your own run as the user x.",
            successor=self.successor,
            end_hosts=lambda: self.ended.append(self.background.pid),
            log=lambda: {"rows": 9, "verified": None, "damage": None, "unwritten": 0, "held": self.held},
            is_end_recorded=lambda rows: self.is_end_recorded and rows == 9,
            is_log_there=lambda: self.is_log_there,
            say=self.said.append,
        )

    @contextmanager
    def successor(self, work: Callable[[], None], patience: float) -> Iterator[None]:
        """Does it if the command is interrupted."""
        try:
            yield
        except KeyboardInterrupt:
            assert patience == 6.0
            work()


def test_one_whose_file_system_was_mounted_anew_is_named_and_not_called_none() -> None:
    machine = Machine()
    machine.lost = 4712
    with pytest.raises(PulseError, match="process 4712 is the daemon of this home"):
        machine.control.stop()
    assert machine.said == []


def test_without_a_unit_it_runs_in_the_background() -> None:
    machine = Machine()
    machine.control.start("--accept-damage")
    assert machine.background.options == ("--accept-damage",)
    assert machine.said == ["Started, process 4711."]


def test_a_unit_starts_it_and_takes_no_options() -> None:
    machine = Machine(unit="u")
    with pytest.raises(PulseError, match="systemd starts this daemon and can't pass --accept-damage"):
        machine.control.start("--accept-damage")
    assert not machine.unit.active
    machine.control.start()
    assert machine.unit.active
    assert machine.background.pid is None
    assert machine.said == ["Started through systemctl."]


def test_a_daemon_in_the_background_is_stopped_although_there_is_a_unit() -> None:
    machine = Machine(unit="u", pid=17)
    assert machine.control.stop()
    assert machine.background.pid is None
    assert machine.said == ["Stopped, it was process 17."]
    assert machine.ended == [None]


def test_a_unit_that_may_be_about_to_start_it_again_is_stopped() -> None:
    machine = Machine(unit="u")
    assert machine.control.stop()
    assert machine.said == ["Stopped through systemctl."]


def test_a_restart_goes_on_although_something_of_earlier_hosts_does_not_end() -> None:
    def fail() -> None:
        raise PulseError("it does not end")

    machine = Machine(pid=17)
    replace(machine.control, end_hosts=fail).restart()
    assert machine.said == ["Stopped, it was process 17.", "it does not end", "Started, process 4711."]


@pytest.mark.parametrize("machine", [Machine(unit="u", active=True), Machine(pid=17)])
def test_what_a_stopped_daemon_could_not_record_is_said_unless_it_was_recorded_at_last(
    machine: Machine,
) -> None:
    machine.held = {"process-died": 8, "effect": 9}
    machine.control.stop()
    assert "LOST: 8 process-died, 9 effect." in machine.said[1]
    machine.control.start()
    machine.is_end_recorded = True
    machine.control.stop()
    assert "LOST" not in machine.said[-1]
    machine.control.start()
    machine.is_log_there = False
    machine.control.stop()
    assert "its 9 rows are LOST" in machine.said[-1]


def test_nothing_to_stop_is_said() -> None:
    machine = Machine()
    assert not machine.control.stop()
    assert machine.said == ["No daemon runs."]
    assert machine.ended == [None]


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Machine(unit="u", active=True), ["Restarted through systemctl."]),
        (Machine(pid=17), ["Stopped, it was process 17.", "Started, process 4711."]),
        (Machine(), ["No daemon runs.", "Started, process 4711."]),
    ],
)
def test_a_restart_leaves_it_where_it_was(machine: Machine, said: list[str]) -> None:
    machine.control.restart()
    assert machine.said == said


@pytest.mark.parametrize("machine", [Machine(unit="u", active=True), Machine(unit="u"), Machine(pid=17)])
def test_where_a_start_would_be_refused_for_the_lock_nothing_is_stopped(machine: Machine) -> None:
    def fail() -> bool:
        raise PulseError("run/lock is no plain file; remove it")

    control = replace(machine.control, is_held=fail)
    before = (machine.background.pid, machine.unit.active, machine.unit.path())
    for refused in (
        control.restart,
        lambda: control.restart(lambda: None),
        lambda: control.install(user=False),
    ):
        with pytest.raises(PulseError, match="remove it\nNothing was stopped or started"):
            refused()
    assert (machine.background.pid, machine.unit.active, machine.unit.path()) == before
    assert machine.said == []


@pytest.mark.parametrize(
    "machine", [Machine(unit="u", active=True), Machine(unit="u"), Machine(pid=17), Machine()]
)
def test_what_is_to_be_done_meanwhile_is_done_between_the_stop_and_the_start(machine: Machine) -> None:
    ran: list[bool] = []
    machine.control.restart(meanwhile=lambda: ran.append(machine.control.is_held()))
    assert ran == [False]
    assert machine.control.is_held()


def test_a_daemon_is_started_again_though_that_failed() -> None:
    machine = Machine(pid=17)

    def fails() -> None:
        raise PulseError("the disk is full")

    with pytest.raises(PulseError, match="disk is full"):
        machine.control.restart(meanwhile=fails)
    assert machine.control.is_held()


@pytest.mark.parametrize("act", ["restart", "install"])
def test_what_is_broken_off_between_a_stop_and_its_start_is_started_all_the_same(act: str) -> None:
    def interrupted(patience: float) -> int:
        machine.background.pid = None
        raise KeyboardInterrupt

    machine = Machine(pid=17)
    machine.background.stop = interrupted  # type: ignore[method-assign]
    machine.control.restart() if act == "restart" else machine.control.install(user=True)
    assert machine.control.is_held()


def test_an_installed_unit_takes_over_from_the_background() -> None:
    machine = Machine(pid=17)
    assert machine.control.install(user=False) == "system/pulse.service"
    assert (machine.background.pid, machine.unit.active) == (None, True)
    assert machine.said == [
        "Rules of your own run as the user x.",
        "Stopped the daemon in the background, process 17.",
    ]


def test_a_unit_of_the_user_makes_no_account() -> None:
    machine = Machine()
    machine.control.install(user=True)
    assert machine.said == []
