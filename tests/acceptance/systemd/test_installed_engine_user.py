"""A system install for a home that is root's: the engine's user is made, used, and kept."""

import json
import sys
from pathlib import Path

import pytest

from tests.acceptance.systemd.systemd_machine import CHECKOUT, Machine, eventually

HOME, OF_A_PERSON, VENV = "/root/.upulse", "/home/ada/.upulse", "/opt/pulse"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = f"/usr/bin/{VERSION}"


class Install:
    """Pulse in /opt, for everybody to read."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        for place in (CHECKOUT, Path(packages)):  # in the machine alone, which is thrown away
            machine.run(["chmod", "go+rx", *place.parents], check=False)
        machine.run([PYTHON, "-m", "venv", "--without-pip", VENV])
        machine.write(f"{VENV}/lib/{VERSION}/site-packages/all.pth", f"{CHECKOUT}\n{packages}\n")

    def upulse(self, *words: str, home: str = HOME, python: str = f"{VENV}/bin/python", code: int = 0) -> str:
        done = self.machine.run([python, "-m", "upulse_cli", *words, "--home", home], check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def user(self) -> str:
        return self.machine.run(["getent", "passwd", "pulse-engine"], check=False).stdout.strip()


@pytest.fixture(scope="module")
def install(machine: Machine) -> Install:
    if not Path(PYTHON).exists():
        pytest.skip(f"there is no {PYTHON}, which another user could read")
    return Install(machine)


def test_an_install_makes_the_user_that_the_engine_then_runs_as(install: Install) -> None:
    install.upulse("init")
    assert install.user() == ""
    (before,) = [
        one
        for one in json.loads(install.upulse("doctor", "--json"))["findings"]
        if one["name"] == "engine user"
    ]
    assert (before["level"], before["remedy"]) == ("warn", "upulse daemon install")
    assert "Rules of your own run as the user pulse-engine." in install.upulse("daemon", "install")
    name, _, uid, gid, _, home, shell = install.user().split(":")
    assert (name, home, shell.rpartition("/")[2]) == ("pulse-engine", "/", "nologin")
    engine = eventually(
        lambda: (
            (one := json.loads(install.upulse("status", "--json")).get("engine")) and one["sandbox"] and one
        ),
        "the engine is up",
        install.machine.words,
    )
    assert engine["sandbox"]["user"] is engine["sandbox"]["control group"] is True
    pids = install.machine.run(["pgrep", "-u", "pulse-engine", "-f", "rule_host.child"]).stdout.split()
    assert len(pids) == 1
    group = install.machine.run(["cat", f"/proc/{pids[0]}/cgroup"]).stdout.rpartition("::")[2]
    assert group.startswith("/system.slice/upulse.service/pulse-")
    status = install.machine.run(["cat", f"/proc/{pids[0]}/status"]).stdout
    assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}" in status
    assert f"Gid:\t{gid}\t{gid}\t{gid}\t{gid}" in status
    assert "engine user" in install.upulse("doctor")
    laid = install.machine.run(["ls", "/var/cache/pulse-engine"]).stdout.split()
    assert len(laid) == 1
    uninstalled = install.upulse("daemon", "uninstall")
    assert "Removed" in uninstalled
    assert install.machine.run(["ls", "/var/cache/pulse-engine"]).stdout.split() == []
    assert not install.machine.path(f"/sys/fs/cgroup{group.strip()}").exists()
    assert install.user().startswith("pulse-engine:")


def test_a_home_that_is_a_persons_gets_none_and_says_what_would_help(install: Install) -> None:
    install.machine.run(["useradd", "--create-home", "ada"])
    install.upulse("init", home=OF_A_PERSON)
    install.machine.run(["chown", "-R", "ada", OF_A_PERSON])
    said = install.upulse("daemon", "install", home=OF_A_PERSON)
    assert "the daemon runs as ada, and only root can give the engine's code another user" in said
    assert "sudo upulse init --home /var/lib/pulse" in said
    eventually(
        lambda: "isolation: partial (no user)" in install.upulse("status", home=OF_A_PERSON),
        "the engine is up without a user",
        install.machine.words,
    )
    install.upulse("daemon", "uninstall", home=OF_A_PERSON)
