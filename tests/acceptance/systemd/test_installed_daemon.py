"""The installed daemon through its command line, under a real systemd: what the issue promises of it."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pulse_adapters.ipc.client import Client
from pulse_core.model.errors import PulseError
from tests.acceptance.systemd.systemd_machine import Machine, eventually
from tests.long_form import in_campaign

HOME = "/srv/h"
CONFIG = f"{HOME}/config.toml"
UNIT = "upulse.service"
BASE = """
[daemon]
tick_ms = 200
[watch]
process_interval = "200ms"
[executors.run-command]
allow = ["/bin/true"]
"""
AT_ONCE = 'restart = { max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }\n'
SLEEPER = '[[process]]\nname = "sleeper"\nstart = ["sleep", "100000"]\n' + AT_ONCE
SECOND = '[[process]]\nname = "second"\nstart = ["sleep", "200000"]\n' + AT_ONCE
GUARDED = '[[process]]\nname = "it"\nsystemd_unit = "it.service"\n' + AT_ONCE
IT = "[Service]\nExecStart=/bin/sleep 300000\nRestart=no\n"
CLEAR = f"""
systemctl --quiet disable --now {UNIT} it.service 2>/dev/null
pkill -KILL -f '[u]pulse_cli'
pkill -KILL sleep
rm -rf {HOME} /srv/hang /etc/systemd/system/{UNIT} /etc/systemd/system/{UNIT}.d
rm -f /etc/systemd/system/it.service /usr/lib/systemd/system/it.service
systemctl daemon-reload && systemctl reset-failed
"""
"""Leaves nothing of a test's, in one process: each that enters the machine costs as much as all that this does."""
FORGE = """
import os, pathlib, socket, subprocess, sys
group = pathlib.Path(f"/proc/{sys.argv[1]}/cgroup").read_text().rpartition(":")[2].strip()
pathlib.Path(f"/sys/fs/cgroup{group}/cgroup.procs").write_text("0")
os.setreuid(65534, -1)
message = f"MESSAGE={sys.argv[2]}\\nSYSLOG_IDENTIFIER=pulse-anchor\\n".encode()
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.connect("/run/systemd/journal/socket")
journal.send(message)
subprocess.run(["journalctl", "--sync"], check=True)
for number in range(int(sys.argv[3])):
    journal.send(message)
"""
"""Writes a line as the last anchor to the journal, once and so many times more: another user, in the control group of a
process."""
# A Python signal handler runs in the main thread: while it sleeps, the loop hangs and the process lives.
HANG = "import signal, time\nsignal.signal(signal.SIGWINCH, lambda *_: time.sleep(1000))\n"


@dataclass(frozen=True)
class Installed:
    """A home in the machine, and the command line on it."""

    machine: Machine

    def upulse(self, *args: str, check: bool = True) -> str:
        """What `upulse … --home` printed."""
        command = [sys.executable, "-m", "upulse_cli", *args, "--home", HOME]
        return self.machine.run(command, check=check).stdout

    def configure(self, *parts: str) -> None:
        self.machine.write(CONFIG, "\n".join((BASE, *parts)))

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.upulse("status", "--json")))

    def standing(self) -> dict[str, Any]:
        """The same from the daemon's own mouth if it has one: a look that is repeated needs no interpreter each time."""
        try:
            with Client(self.machine.socket(f"{HOME}/run/pulse.sock")) as client:
                return client.ask("status")
        except PulseError:
            return self.status()

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.upulse("events", "--json", "--kind", kind).splitlines()]

    def pid_of(self, name: str) -> int | None:
        """The pid of a guarded process that Pulse says is there, if it is alive."""
        pids = [found["pid"] for found in self.standing()["processes"] if found["name"] == name]
        return pids[0] if pids and pids[0] and self.alive(pids[0]) else None

    def pid_when_up(self, name: str, *, other_than: int | None = None) -> int:
        def seen() -> int | None:
            pid = self.pid_of(name)
            return pid if pid != other_than else None

        return eventually(seen, f"{name} to be up", self.machine.words)

    def main_pid(self) -> int:
        return int(self.machine.show(UNIT, "MainPID"))

    def state(self, unit: str = UNIT) -> str:
        return self.machine.show(unit, "ActiveState")

    def until(self, look: Callable[[], bool], what: str) -> None:
        eventually(look, what, self.machine.words)

    def until_another_main_pid(self, than: int) -> None:
        def changed() -> bool:
            look = ["show", "--value", "-p", "MainPID", "-p", "SubState", UNIT]
            shown = set(self.machine.systemctl(*look).stdout.split())
            return "running" in shown and not shown & {"0", str(than)}

        self.until(changed, "another daemon")

    def alive(self, pid: int) -> bool:
        return self.machine.run(["kill", "-0", str(pid)], check=False).returncode == 0


@pytest.fixture(scope="module")
def made(machine: Machine) -> str:
    """Where the machine keeps a home as `upulse init --no-engine` makes it."""
    Installed(machine).upulse("init", "--no-engine")
    machine.run(["mv", HOME, "/srv/made"])
    return "/srv/made"


@pytest.fixture
def home(machine: Machine, made: str) -> Iterator[Installed]:
    """A home that guards one sleeper, not installed yet; nothing of it is left afterwards."""
    installed = Installed(machine)
    machine.run(["sh", "-c", CLEAR])
    machine.run(["cp", "--archive", made, HOME])
    installed.configure(SLEEPER)
    yield installed
    machine.run(["sh", "-c", CLEAR])


@pytest.fixture
def with_engine(home: Installed) -> Iterator[Installed]:
    """The same, installed, with an engine as `upulse init` makes it, and with that a user of its own."""
    home.machine.run(["rm", "-rf", HOME])  # the journal keeps what is told of a log: it has an id of its own
    home.upulse("init")
    home.configure(SLEEPER)
    try:
        home.upulse("daemon", "install")
        home.pid_when_up("sleeper")
        yield home
    finally:
        home.upulse("daemon", "uninstall", check=False)


@pytest.fixture
def daemon(machine: Machine, made: str) -> Installed:
    """The home with its daemon installed and its sleeper up: the one of the test before, if that has left it."""
    installed = Installed(machine)
    machine.run(["sh", "-c", f"test -e {HOME} || cp --archive {made} {HOME}"])
    installed.configure(SLEEPER)
    if machine.show(UNIT, "LoadState") == "not-found":
        installed.upulse("daemon", "install")
    else:
        machine.systemctl("start", UNIT)
        machine.systemctl("reload", UNIT)
    installed.pid_when_up("sleeper")
    return installed


def test_a_killed_process_is_replaced_and_inherits_no_word_of_the_notify_socket(daemon: Installed) -> None:
    before = daemon.pid_when_up("sleeper")
    daemon.machine.run(["kill", "-9", str(before)])
    after = daemon.pid_when_up("sleeper", other_than=before)
    assert not daemon.alive(before)
    assert after != before
    assert daemon.machine.run(["pgrep", "-fc", "sleep 100000"]).stdout == "1\n"
    environment = daemon.machine.path(f"/proc/{after}/environ").read_bytes().split(b"\0")
    names = {entry.partition(b"=")[0] for entry in environment}
    assert b"PULSE_EFFECT" in names
    assert not names & {b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"WATCHDOG_PID"}
    asked = ["journalctl", "--no-pager", "-o", "short-monotonic", "-t", "upulse", "-p", "warning"]
    wrong = daemon.machine.run([*asked, "-u", UNIT]).stdout.splitlines()
    assert any("process-died" in line and "sleeper" in line for line in wrong)
    assert not any("process-up" in line or "{" in line for line in wrong)
    assert "WARNING process-died" in daemon.upulse("daemon", "logs", "-n", "100")


def test_what_another_user_writes_to_the_journal_is_neither_an_anchor_nor_the_daemons(
    with_engine: Installed,
) -> None:
    """As the engine's user can, whose processes are in groups of the unit."""
    daemon = with_engine
    forged = json.dumps({"home": "another", "path": HOME, "seq": 1, "chain": "00" * 32, "at": 2**62})
    daemon.machine.run([sys.executable, "-c", FORGE, str(daemon.main_pid()), forged, "0"])
    asked = ["journalctl", "--no-pager", "-o", "cat", "-u", UNIT, "-t", "pulse-anchor"]
    assert daemon.machine.run(asked).stdout == f"{forged}\n"
    assert "ok" in daemon.upulse("verify")
    assert "another" not in daemon.upulse("daemon", "logs", "-n", "100")
    daemon.machine.write(f"/etc/systemd/system/{UNIT}.d/few.conf", "[Service]\nLogRateLimitBurst=200\n")
    daemon.configure(SLEEPER, '[anchor]\njournal = true\nevery = "1s"\n')
    daemon.machine.systemctl("daemon-reload")
    daemon.upulse("daemon", "restart")
    written = [*asked, "_UID=0", "--since=-60s"]
    daemon.until(lambda: daemon.machine.run(written).stdout.count("\n") > 1, "two anchors")
    assert "it lacks the line" not in daemon.upulse("events", "--kind", "error")
    many = "4000"  # the journal takes the more of the 200 the more room its disk has: a thousand with 64 GiB

    def is_told() -> bool:
        # Again each time: the journal drops what is too much only until its thirty seconds are over, which may be at once.
        daemon.machine.run([sys.executable, "-c", FORGE, str(daemon.main_pid()), forged, many])
        daemon.upulse("process", "restart", "sleeper")  # the log has to grow
        return "it lacks the line" in daemon.upulse("events", "--kind", "error")

    daemon.until(is_told, "a lost anchor")


def test_a_killed_daemon_is_back_and_has_lost_nothing_and_after_three_it_is_in_safe_mode(
    with_engine: Installed,
) -> None:
    home = with_engine
    sleeper, before = home.pid_when_up("sleeper"), home.main_pid()
    assert home.machine.systemctl("is-enabled", UNIT).stdout == "enabled\n"
    told = json.loads(home.upulse("daemon", "status", "--json"))
    assert (home.state(), told["state"], told["pid"]) == ("active", "running", before)
    add = ["effect", "add", "run-command", "--param", 'argv=["true"]']
    added = [home.upulse(*add, "--key", f"k{n}").strip() for n in range(3)]
    home.machine.systemctl("kill", "--signal=KILL", "--kill-whom=main", UNIT)
    home.until_another_main_pid(than=before)
    assert home.machine.systemctl("show", "--value", "--property=RestartUSec", UNIT).stdout == "100ms\n"
    assert set(added) <= {event["id"] for event in home.events("effect")}
    home.upulse("verify")
    assert home.pid_when_up("sleeper") == sleeper
    for _ in range(2):
        main = home.main_pid()
        home.machine.systemctl("kill", "--signal=KILL", "--kill-whom=main", UNIT)
        home.until_another_main_pid(main)
    assert home.standing()["safe_mode"]["left_out"] == ["engine"]
    home.upulse("daemon", "restart")
    assert home.standing()["safe_mode"]
    home.upulse("daemon", "restart", "--normal")
    home.until(lambda: bool(home.standing()["engine"]["runs"]), "the engine to run")
    assert home.standing()["safe_mode"] is None


def test_a_daemon_that_was_killed_acts_again(daemon: Installed) -> None:
    sleeper, before = daemon.pid_when_up("sleeper"), daemon.main_pid()
    daemon.machine.systemctl("kill", "--signal=KILL", "--kill-whom=main", UNIT)
    daemon.machine.run(["kill", "-9", str(sleeper)])  # nobody is there to see it
    daemon.until_another_main_pid(than=before)
    daemon.pid_when_up("sleeper", other_than=sleeper)


def test_a_daemon_that_works_is_not_touched_by_the_watchdog_and_one_whose_loop_hangs_is_restarted(
    home: Installed,
) -> None:
    machine = home.machine
    machine.write("/srv/hang/sitecustomize.py", HANG)
    machine.write(f"/etc/systemd/system/{UNIT}.d/hang.conf",
                  "[Service]\nWatchdogSec=500ms\nTimeoutAbortSec=1s\nEnvironment=PYTHONPATH=/srv/hang\n")  # fmt: skip
    home.upulse("daemon", "install")
    sleeper, before = home.pid_when_up("sleeper"), home.main_pid()
    ticks = home.standing()["tick"]["count"]
    home.until(lambda: home.standing()["tick"]["count"] >= ticks + 10, "ten ticks")  # four watchdog periods
    assert home.main_pid() == before
    machine.systemctl("kill", "--signal=WINCH", "--kill-whom=main", UNIT)
    home.until_another_main_pid(than=before)
    assert "Watchdog timeout" in machine.journal(UNIT)
    assert home.pid_when_up("sleeper") == sleeper


@in_campaign  # `test_cli_live_home` reloads, and `test_systemd_unit` has it called
def test_a_reload_takes_changed_settings_into_force_and_with_invalid_ones_it_fails(daemon: Installed) -> None:
    before = daemon.main_pid()
    daemon.configure(SLEEPER, SECOND)
    daemon.machine.systemctl("reload", UNIT)
    assert daemon.events("settings-loaded")[-1]["data"]["processes"] == ["sleeper", "second"]
    daemon.pid_when_up("second")
    daemon.configure(SLEEPER)
    daemon.upulse("daemon", "reload")
    loaded = daemon.events("settings-loaded")
    assert loaded[-1]["data"]["processes"] == ["sleeper"]
    daemon.configure(SLEEPER.replace("start =", "stort ="))
    assert daemon.machine.systemctl("reload", UNIT, check=False).returncode != 0
    refused = daemon.events("settings-refused")[-1]
    assert "stort" in "".join(refused["data"]["faults"])
    assert daemon.events("settings-loaded") == loaded
    assert (daemon.main_pid(), daemon.state()) == (before, "active")
    sleeper = daemon.pid_when_up("sleeper")
    daemon.machine.run(["kill", "-9", str(sleeper)])
    daemon.pid_when_up("sleeper", other_than=sleeper)


def test_start_stop_and_restart_go_through_systemctl_and_leave_guarded_processes_running(
    daemon: Installed,
) -> None:
    sleeper, first = daemon.pid_when_up("sleeper"), daemon.main_pid()
    daemon.machine.systemctl("stop", UNIT)
    assert (daemon.state(), daemon.machine.show(UNIT, "Result")) == ("inactive", "success")
    assert daemon.alive(sleeper)
    daemon.upulse("daemon", "start")
    second = daemon.main_pid()
    assert daemon.state() == "active"
    assert second not in (0, first)
    daemon.upulse("daemon", "restart")
    assert daemon.state() == "active"
    assert daemon.main_pid() not in (0, second)
    assert daemon.pid_when_up("sleeper") == sleeper
    assert daemon.machine.run(["pgrep", "-fc", "sleep 100000"]).stdout == "1\n"
    daemon.upulse("daemon", "stop")
    assert daemon.state() == "inactive"
    assert daemon.status()["daemon"]["state"] == "stopped"


def test_uninstall_removes_the_unit_and_keeps_home_and_processes(daemon: Installed) -> None:
    sleeper = daemon.pid_when_up("sleeper")
    daemon.upulse("daemon", "uninstall")
    assert daemon.machine.show(UNIT, "LoadState") == "not-found"
    assert daemon.alive(sleeper)
    daemon.upulse("verify")


def test_a_guarded_unit_that_was_stopped_on_purpose_stays_down_and_a_killed_one_is_healed(
    home: Installed,
) -> None:
    home.machine.write("/etc/systemd/system/it.service", IT)
    home.machine.systemctl("daemon-reload")
    home.machine.systemctl("start", "it.service")
    home.configure(GUARDED)
    home.upulse("daemon", "install")
    home.pid_when_up("it")
    home.machine.systemctl("stop", "it.service")
    home.until(lambda: bool(home.events("process-stopped")), "the intent to be seen")
    ticks = home.standing()["tick"]["count"]
    home.until(lambda: home.standing()["tick"]["count"] >= ticks + 5, "five more ticks")
    assert home.state("it.service") == "inactive"
    assert home.events("effect") == []
    home.machine.systemctl("start", "it.service")
    before = home.pid_when_up("it")
    assert before == int(home.machine.show("it.service", "MainPID"))
    home.machine.systemctl("kill", "--signal=KILL", "--kill-whom=main", "it.service")
    after = home.pid_when_up("it", other_than=before)
    assert home.state("it.service") == "active"
    assert after == int(home.machine.show("it.service", "MainPID"))
    assert [effect["data"]["params"]["process"] for effect in home.events("effect")] == ["it"]
    died = home.events("process-died")[-1]["data"]
    assert (died["evidence"], died.get("intended")) == (f"process {before} was killed by SIGKILL", None)


def test_a_guarded_unit_whose_process_ends_with_an_error_when_it_is_stopped_or_masked_or_restarted_is_no_failure(
    home: Installed,
) -> None:
    script = "trap 'exit 143' TERM; while :; do sleep 0.1; done"
    home.machine.write("/usr/lib/systemd/system/it.service", f'[Service]\nExecStart=/bin/sh -c "{script}"\n')
    home.machine.systemctl("daemon-reload")
    home.machine.systemctl("start", "it.service")
    home.configure(GUARDED)
    home.upulse("daemon", "install")
    home.pid_when_up("it")
    home.machine.systemctl("stop", "it.service")
    home.until(lambda: bool(home.events("process-stopped")), "the intent to be seen")
    assert home.state("it.service") == "failed"
    died = home.events("process-died")[-1]["data"]
    assert "exited with status 143; unit was told to stop" in died["evidence"]
    assert died["intended"]
    home.machine.systemctl("start", "it.service")
    home.pid_when_up("it")
    home.machine.systemctl("mask", "--now", "it.service")
    home.until(lambda: len(home.events("process-stopped")) == 2, "the second intent to be seen")
    home.machine.systemctl("unmask", "it.service")
    home.machine.systemctl("start", "it.service")
    before = home.pid_when_up("it")
    home.machine.systemctl("restart", "it.service")
    home.pid_when_up("it", other_than=before)
    assert home.events("effect") == []
    assert home.upulse("incidents").startswith("0 incidents ")


def test_a_user_unit_runs_the_daemon_in_the_users_manager(home: Installed) -> None:
    home.machine.systemctl("start", "user@0.service")
    try:
        home.upulse("daemon", "install", "--user")
        home.pid_when_up("sleeper")
        users = ["env", "XDG_RUNTIME_DIR=/run/user/0", "systemctl", "--user", "is-active", UNIT]
        assert home.machine.run(users).stdout == "active\n"
        home.upulse("daemon", "uninstall")
        assert home.machine.run(users, check=False).stdout == "inactive\n"
    finally:
        home.machine.systemctl("stop", "user@0.service")


def test_a_unit_of_another_version_is_found_and_written_anew(daemon: Installed) -> None:
    path = f"/etc/systemd/system/{UNIT}"
    good = daemon.machine.run(["cat", path]).stdout
    daemon.machine.write(path, good.replace("WatchdogSec=30s", "WatchdogSec=9s"))
    found = json.loads(daemon.upulse("doctor", "--json"))["findings"]
    assert [one["level"] for one in found if one["name"] == "unit"] == ["warn"]
    told = json.loads(daemon.upulse("doctor", "--repair", "--json"))
    assert "is written anew" in told["repaired"][-1]
    assert daemon.machine.run(["cat", path]).stdout == good
    assert daemon.state() == "active"
