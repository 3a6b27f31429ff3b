"""Our notifier, unit and manager against a real systemd, with a small service in the daemon's place."""

import json
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.systemd.manager import UNIT_NAME
from tests.acceptance.systemd.systemd_machine import Machine, eventually
from tests.process_trees import PROGRAMS, script_of

SERVICE = '''\
"""Stands in the daemon's place: starts a child, and feeds the watchdog until /srv/hang is there."""
import json, os, subprocess, sys, time
from pulse_adapters.systemd.notify import Notifier

notifier = Notifier.from_environment()
child = subprocess.Popen(["sleep", "100000"])
told = {"argv": sys.argv[1:], "child": child.pid, "watchdog": notifier.watchdog_seconds()}
while not os.path.exists("/srv/go"):
    time.sleep(0.01)
with open("/srv/told", "w") as file:
    json.dump(told, file)
notifier.ready()
while True:
    time.sleep(0.05)
    if not os.path.exists("/srv/hang"):
        notifier.watchdog()
'''
HOME = Path('/srv/a home/$HOME ${HOME} 100% %h "q" \\b')
PYTHON = Path("/srv/an interpreter/50% py$thon")
UNIT = Path("/etc/systemd/system", UNIT_NAME)


@pytest.fixture
def house(machine: Machine) -> Iterator[Machine]:
    """The machine with a home and an interpreter of awkward names, and none of our units before and after."""
    machine.run(["mkdir", "-p", HOME, PYTHON.parent])
    machine.write("/srv/service.py", SERVICE)
    machine.write("/srv/go", "")
    machine.write(str(PYTHON), f'#!/bin/sh\nexec {shlex.quote(sys.executable)} /srv/service.py "$@"\n')
    machine.run(["chmod", "+x", PYTHON])
    yield machine
    machine.systemctl("disable", "--now", UNIT_NAME, check=False)
    machine.run(["sh", "-c", f"pkill sleep; rm -rf /srv/* {UNIT} {UNIT}.d; systemctl daemon-reload"])


def ask(machine: Machine, call: str) -> str:
    """What an expression about the adapter prints inside; a PulseError prints as `refused: …`."""
    script = f"""
import os
from pathlib import Path
from pulse_adapters.systemd import manager as systemd
from pulse_core.model.errors import PulseError
home, python = Path({str(HOME)!r}), {str(PYTHON)!r}
try:
    print({call})
except PulseError as error:
    print("refused:", error)
"""
    return machine.run([sys.executable, "-c", script]).stdout.strip()


def install_and_start(machine: Machine) -> dict[str, Any]:
    """Install the unit with the service in it, and give back what the service told."""
    assert ask(machine, "systemd.install(home, python=python).control('start')") == "None"
    return dict(json.loads(machine.path("/srv/told").read_text()))


def alive(machine: Machine, pid: int) -> bool:
    return machine.run(["kill", "-0", str(pid)], check=False).returncode == 0


def is_back(machine: Machine, restarts: int) -> bool:
    shown = machine.systemctl("show", "--value", "-p", "NRestarts", "-p", "SubState", UNIT_NAME).stdout
    return set(shown.split()) == {str(restarts), "running"}


def test_a_unit_is_active_when_its_service_says_ready_and_not_before(house: Machine) -> None:
    ask(house, "systemd.install(home, python=python)")
    house.path("/srv/go").unlink()
    house.systemctl("start", "--no-block", UNIT_NAME)
    eventually(lambda: house.show(UNIT_NAME, "MainPID") != "0", "a main process")
    assert house.show(UNIT_NAME, "ActiveState") == "activating"
    house.write("/srv/go", "")
    eventually(lambda: house.show(UNIT_NAME, "ActiveState") == "active", "READY", house.words)
    assert ask(house, "systemd.installed(home).is_active()") == "True"


def test_awkward_paths_arrive_as_they_are(house: Machine) -> None:
    told = install_and_start(house)
    assert told["argv"] == ["-m", "upulse_cli.serve", "--home", str(HOME)]
    assert told["watchdog"] == 30.0


def test_what_the_service_starts_cannot_speak_for_it(house: Machine) -> None:
    child = install_and_start(house)["child"]
    environment = house.path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    names = {entry.partition(b"=")[0] for entry in environment}
    assert b"INVOCATION_ID" in names  # it is a child of the service
    assert not names & {b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID"}


def test_a_service_that_stops_feeding_the_watchdog_is_replaced(house: Machine) -> None:
    house.write(f"{UNIT}.d/watchdog.conf", "[Service]\nWatchdogSec=1s\n")
    child = install_and_start(house)["child"]
    first = house.show(UNIT_NAME, "MainPID")
    house.write("/srv/hang", "")
    eventually(lambda: "Watchdog timeout" in house.journal(UNIT_NAME), "the watchdog")
    house.path("/srv/hang").unlink()
    replaced = lambda: house.show(UNIT_NAME, "MainPID") not in ("0", first)  # noqa: E731
    eventually(replaced, "its replacement", house.words)
    eventually(lambda: house.show(UNIT_NAME, "SubState") == "running", "readiness", house.words)
    assert alive(house, child)


def test_what_the_service_started_outlives_stop_and_uninstall(house: Machine) -> None:
    child = install_and_start(house)["child"]
    ask(house, "systemd.installed(home).control('stop')")
    assert house.show(UNIT_NAME, "ActiveState") == "inactive"
    assert alive(house, child)
    ask(house, "systemd.installed(home).control('start')")
    ask(house, "systemd.uninstall(home)")
    assert house.systemctl("is-active", UNIT_NAME, check=False).stdout == "inactive\n"
    assert house.show(UNIT_NAME, "LoadState") == "not-found"
    assert ask(house, "systemd.installed(home)") == "None"
    assert alive(house, child)


def test_a_killed_service_is_back_however_often_it_is_killed(house: Machine) -> None:
    install_and_start(house)
    for killed in range(1, 9):  # systemd's own limit would be five starts in ten seconds
        house.systemctl("kill", "--signal=KILL", "--kill-whom=main", UNIT_NAME)
        eventually(partial(is_back, house, killed), f"restart {killed}", house.words)


def faults_of(house: Machine, unit: str | Path) -> list[str]:
    """What systemd finds wrong with a unit; before 254 it passes over a key, and says so."""
    told = house.run(["systemd-analyze", "verify", unit], check=False).stderr.splitlines()
    return [line for line in told if "'DelegateSubgroup' in section" not in line]


def test_install_enables_the_unit_for_the_next_boot(house: Machine) -> None:
    assert ask(house, "systemd.install(home, python=python).path") == str(UNIT)
    assert house.systemctl("is-enabled", UNIT_NAME).stdout == "enabled\n"
    assert faults_of(house, UNIT) == []


def test_a_system_unit_runs_as_the_owner_of_the_home(house: Machine) -> None:
    house.run(["chown", "nobody", HOME])
    ask(house, "systemd.install(home, python=python)")
    assert house.show(UNIT_NAME, "User") == "nobody"


def test_installing_again_replaces_the_unit(house: Machine) -> None:
    ask(house, "systemd.install(home, python='/usr/bin/true')")
    ask(house, "systemd.install(home, python=python)")
    assert "/usr/bin/true" not in house.path(str(UNIT)).read_text()


def test_a_unit_of_another_home_is_not_replaced(house: Machine) -> None:
    house.run(["mkdir", "-p", "/srv/other"])
    ask(house, "systemd.install(Path('/srv/other'), python=python)")
    said = ask(house, "systemd.install(home, python=python)")
    assert said == f"refused: {UNIT} is there already and serves /srv/other; remove that one first"
    assert ask(house, "systemd.installed(Path('/srv/other')).home") == "/srv/other"


def test_a_system_unit_needs_root_and_says_so(house: Machine) -> None:
    said = ask(house, "os.seteuid(65534) or systemd.install(home, python=python)")
    assert said.startswith("refused: ")
    assert "--user" in said
    assert not house.path(str(UNIT)).exists()


def test_an_install_that_systemd_refuses_leaves_nothing(house: Machine) -> None:
    said = ask(house, "systemd.install(home, user=True, python=python)")
    assert said.startswith("refused: systemctl --user daemon-reload: Failed to connect to bus")
    assert ask(house, "systemd.installed(home)") == "None"


def test_a_user_unit_runs_in_its_users_own_manager(house: Machine) -> None:
    house.systemctl("start", "user@0.service")
    try:
        unit = Path("/root/.config/systemd/user", UNIT_NAME)
        assert ask(house, "systemd.install(home, user=True, python=python).path") == str(unit)
        ask(house, "systemd.installed(home).control('start')")
        assert ask(house, "systemd.installed(home).is_active()") == "True"
        assert house.show(UNIT_NAME, "LoadState") == "not-found"
        ask(house, "systemd.uninstall(home)")
        assert not house.path(str(unit)).exists()
    finally:
        house.systemctl("stop", "user@0.service")


def test_systemctl_speaks_in_its_own_words(house: Machine) -> None:
    said = ask(house, "systemd.systemctl('start', 'no-such.service', user=False)")
    assert said.startswith("refused: systemctl start no-such.service: ")
    assert "not found" in said


def test_a_home_that_no_unit_serves_cannot_be_uninstalled(house: Machine) -> None:
    assert ask(house, "systemd.uninstall(home)").startswith(f"refused: no systemd unit serves {HOME}")


def test_instances_have_units_of_their_own_beside_the_usual_one(house: Machine) -> None:
    homes = {
        "upulse.service": "/srv/usual",
        "upulse@a.service": "/srv/me/.upulse-a",
        "upulse@b-2.service": "/srv/.upulse-b-2",
    }
    for unit, home in homes.items():
        house.run(["mkdir", "-p", home, "/srv/other/.upulse-a"])
        made = ask(house, f"systemd.install(Path({home!r}), python=python).control('start')")
        assert made == "None"
        assert house.systemctl("is-enabled", unit).stdout == "enabled\n"
        assert ask(house, f"systemd.installed(Path({home!r})).name") == unit
        assert faults_of(house, f"/etc/systemd/system/{unit}") == []
    try:
        assert len({house.show(unit, "MainPID") for unit in homes}) == 3
        assert ask(house, "[unit.name for unit in systemd.units()]") == str(sorted(homes))
        ask(house, "systemd.installed(Path('/srv/me/.upulse-a')).control('stop')")
        assert [house.show(unit, "ActiveState") for unit in homes] == ["active", "inactive", "active"]
        said = ask(house, "systemd.install(Path('/srv/other/.upulse-a'), python=python)")
        assert "serves /srv/me/.upulse-a; remove that one first" in said
    finally:
        for home in homes.values():
            ask(house, f"systemd.uninstall(Path({home!r}))")
    assert ask(house, "list(systemd.units())") == "[]"


def test_what_systemd_reaps_of_these_programs_is_all_of_them(house: Machine) -> None:
    """As Pulse does: test_host_lives kills the same programs."""
    seconds, names = "987654321", [f"tree-{number}" for number in range(len(PROGRAMS))]
    for name, (program, (script, _)) in zip(names, PROGRAMS.items(), strict=True):
        kind = "forking" if "exit 0" in script else "exec"
        house.write(f"/srv/{name}", script_of(script, seconds, Path(f"/srv/{name}.pid")) + f" # {program}\n")
        unit = f"[Service]\nType={kind}\nExecStart=/bin/sh /srv/{name}\nTimeoutStopSec=1\n"
        house.write(f"/run/systemd/system/{name}.service", unit)

    def alive() -> int:
        return len(house.run(["pgrep", "-f", f"sleep {seconds}$"], check=False).stdout.split())

    house.systemctl("daemon-reload")
    house.systemctl("start", *names)
    eventually(lambda: alive() == sum(size for _, size in PROGRAMS.values()), "all of them", house.words)
    for name in names:
        house.systemctl("kill", "--kill-who=main", "--signal=KILL", name)
    eventually(lambda: alive() == 0, "nothing to be left", house.words)
