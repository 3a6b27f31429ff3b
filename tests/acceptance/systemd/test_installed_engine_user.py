"""A system install for homes that are root's: each engine's user is made, used, kept to its own, and removed."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.systemd.systemd_machine import CHECKOUT, Machine, eventually
from tests.hostile_suite import ACTIONS_APART, CLASSES, Outcome, config
from tests.long_form import sample

HOME, OTHER, OF_A_PERSON, VENV = "/root/.upulse", "/root/.upulse-other", "/home/ada/.upulse", "/opt/pulse"
HOSTILE, HARMLESS = "/root/.upulse-hostile", "/root/.upulse-harmless"
OWN_PLACES = "/tmp /dev/shm /run"
"""Of the machine alone. What other tests do meanwhile outside shows through everywhere else. Another home's daemon goes on
making and removing files there, so what is gone before `find` looks at it is no error."""
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

    def users(self) -> list[list[str]]:
        """The users that are recorded for homes of this machine, as in /etc/passwd."""
        records = self.tells("grep -ls 'home \"/root/' /etc/sysusers.d/pulse-engine-*.conf || true").split()
        return [self.tells(f"getent passwd {Path(one).stem}").strip().split(":") for one in records]

    def tells(self, words: str) -> str:
        """What these words of a shell print."""
        return self.machine.run(["sh", "-c", words]).stdout

    def as_user(self, name: str, *words: str) -> int:
        """The exit code of a program of that user."""
        argv = ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", *words]
        return self.machine.run(argv, check=False).returncode

    def engine(self, home: str) -> dict[str, Any]:
        """What the daemon says of its engine, once that is up."""

        def up() -> dict[str, Any] | None:
            engine = json.loads(self.upulse("status", "--json", home=home)).get("engine")
            return engine if engine and engine["sandbox"] else None

        return eventually(up, "the engine is up", self.machine.words)


@pytest.fixture(scope="module")
def install(machine: Machine) -> Install:
    if not Path(PYTHON).exists():
        pytest.skip(f"there is no {PYTHON}, which another user could read")
    return Install(machine)


@pytest.mark.timeout(600)
def test_each_home_has_a_user_of_its_own_from_its_install_to_its_uninstall(install: Install) -> None:
    group = an_install_makes_the_user_that_the_engine_then_runs_as(install)
    another_home_gets_another_user_which_reads_nothing_of_the_first(install)
    an_uninstall_leaves_nothing_of_its_home_and_all_of_the_other(install)
    assert not install.machine.path(f"/sys/fs/cgroup{group}").exists()


def an_install_makes_the_user_that_the_engine_then_runs_as(install: Install) -> str:
    """The control group of its rules' host."""
    install.upulse("init")
    assert install.users() == []
    (before,) = [
        one
        for one in json.loads(install.upulse("doctor", "--json"))["findings"]
        if one["name"] == "engine user"
    ]
    assert (before["level"], before["remedy"]) == ("warn", "upulse daemon install")
    said = install.upulse("daemon", "install")
    ((name, _, uid, gid, _, home, shell),) = install.users()
    assert f"Rules of your own run as the user {name}." in said
    assert name.startswith("pulse-engine-")
    assert (home, shell.rpartition("/")[2]) == ("/", "nologin")
    engine = install.engine(HOME)
    assert {engine["sandbox"][part] for part in ("user", "scratch", "control group")} == {True}
    # On a busy machine a host that is late for a tick is replaced: for a moment there is none.
    pid = eventually(
        lambda: install.tells(f"pgrep -u {name} -f rule_host.child || true").strip(),
        "a rule host",
        install.machine.words,
    )
    group = install.machine.run(["cat", f"/proc/{pid}/cgroup"]).stdout.rpartition("::")[2]
    assert group.startswith("/system.slice/upulse.service/pulse-")
    status = install.machine.run(["cat", f"/proc/{pid}/status"]).stdout
    assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}" in status
    assert f"Gid:\t{gid}\t{gid}\t{gid}\t{gid}" in status
    assert "pulse-scratch" not in install.machine.run(["cat", "/proc/mounts"]).stdout
    assert "engine user" in install.upulse("doctor")
    return group.strip()


def another_home_gets_another_user_which_reads_nothing_of_the_first(install: Install) -> None:
    install.upulse("init", home=OTHER)
    install.upulse("daemon", "install", home=OTHER)
    first, second = (line[0] for line in sorted(install.users(), key=lambda line: int(line[2])))
    code = {}
    for home, place in ((HOME, "upulse-"), (OTHER, "upulse-other-")):
        commit = install.engine(home)["runs"]
        there, revisions = f"/var/cache/pulse-engine/{place}*", f"{home}/revisions"
        words = f"ls -d {there}/{commit}/engine.py || ! find {there} {revisions} -maxdepth 1 -ls >&2"
        code[home] = install.tells(words).strip()
    owner = {
        home: next(user for user in (first, second) if install.as_user(user, "cat", file) == 0)
        for home, file in code.items()
    }
    assert {*owner.values()} == {first, second}
    assert install.as_user(owner[HOME], "cat", code[OTHER]) != 0
    assert install.as_user(owner[OTHER], "cat", code[HOME]) != 0


def an_uninstall_leaves_nothing_of_its_home_and_all_of_the_other(install: Install) -> None:
    tells = install.tells
    conf = tells(f"grep -l '\"{HOME}\"' /etc/sysusers.d/*").strip()
    name = conf.rpartition("/")[2].removesuffix(".conf")
    uid = next(line[2] for line in install.users() if line[0] == name)
    (kept,) = {line[0] for line in install.users()} - {name}
    laid_out = tells(f"find /var/cache/pulse-engine -maxdepth 1 -name 'upulse-*' -group {name}").strip()
    tells(f"install -d -m 0700 -o {name} -g {name} {laid_out}/work-{uid}")
    # What hands may leave: links, folders that are closed to it itself, files, and programs in sessions of their own.
    litter = (
        f"cd {laid_out}/work-{uid} && ln -s /etc link && mkdir -p a/b && chmod 0 a && "
        "mkdir /tmp/mine && touch /tmp/mine/x /dev/shm/y && (setsid sleep 600 >/dev/null 2>&1 &)"
    )
    assert install.as_user(name, "sh", "-c", litter) == 0
    etc = tells("stat -c '%a %U' /etc")
    said = install.upulse("daemon", "uninstall")
    assert f"Removed the user {name}." in said
    assert [line[0] for line in install.users()] == [kept]
    assert tells(f"getent passwd {name}; getent group {name}; ls -d {laid_out} 2>/dev/null || true") == ""
    assert tells(f"find {OWN_PLACES} -ignore_readdir_race -uid {uid} -o -gid {uid}") == ""
    assert tells(f"ps -o pid= -u {uid} || true") == ""
    assert tells("stat -c '%a %U' /etc") == etc
    assert install.engine(OTHER)["sandbox"]["user"] is True
    install.upulse("daemon", "uninstall", home=OTHER)
    assert tells(f"getent passwd {kept}; getent group {kept}; true") == ""
    assert tells("ls -d /var/cache/pulse-engine/upulse-* 2>/dev/null || true") == ""
    assert install.users() == []


@pytest.mark.wall_clock
@pytest.mark.timeout(sample(600, 3000))
@pytest.mark.parametrize("flags", sample([()], [(), ("--user",)]))
def test_what_is_guarded_is_back_as_soon_as_beside_a_harmless_engine(
    install: Install, flags: tuple[str, ...]
) -> None:
    if flags:
        install.machine.systemctl("start", "user@0.service")
    for home in (HOSTILE, HARMLESS):
        install.upulse("init", home=home)
        install.machine.write(f"{home}/config.toml", config(Path(home)))
        install.upulse("daemon", "install", *flags, home=home)
    assert [install.engine(home)["sandbox"]["user"] for home in (HOSTILE, HARMLESS)] == [not flags] * 2
    how = sample((), ("env", "PULSE_CAMPAIGN=1"))
    short = (ACTIONS_APART,)  # `test_hostile_suite` has the others
    for name in sample(short, [one for one in CLASSES if one != ACTIONS_APART or not flags]):
        argv = [*how, f"{VENV}/bin/python", "-m", "tests.hostile_suite", name, HOSTILE, HARMLESS]
        outcome = Outcome(**json.loads(install.machine.run(argv, timeout=sample(120, 1500)).stdout))
        print(f"{name}: {outcome}")
        assert outcome.verdict() == ""
    for home in (HOSTILE, HARMLESS):
        install.upulse("daemon", "uninstall", home=home)
        install.machine.run(["rm", "-rf", home])


def test_a_home_that_is_a_persons_gets_none_and_says_what_would_help(install: Install) -> None:
    install.machine.run(["useradd", "--create-home", "ada"])
    install.upulse("init", home=OF_A_PERSON)
    install.machine.run(["chown", "-R", "ada", OF_A_PERSON])
    said = install.upulse("daemon", "install", home=OF_A_PERSON)
    assert "the daemon runs as ada, and only root can give the engine's code another user" in said
    assert "sudo upulse init --home /var/lib/pulse" in said
    eventually(
        lambda: "isolation: partial (no user" in install.upulse("status", home=OF_A_PERSON),
        "the engine is up without a user",
        install.machine.words,
    )
    install.upulse("daemon", "uninstall", home=OF_A_PERSON)
