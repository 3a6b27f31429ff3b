"""Pulse's systemd unit: its text, installing it, finding it again, and starting or stopping the daemon through it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pulse_adapters.workers.journal_entry import field_text
from pulse_adapters.workers.plain_file import replace_plain
from pulse_adapters.workers.users import expand_home, find_user, user_name
from pulse_core.model.errors import PulseError

UNIT_NAME = "upulse.service"
INSTANCES = "upulse@*.service"
"""What the units of instances are called. Each is a whole file: a template could serve neither several users nor homes
that lie elsewhere."""

_INSTANCE = re.compile(r"\.upulse-([A-Za-z0-9][A-Za-z0-9_-]{0,31})")

_TEMPLATE = """\
# Written by `upulse daemon install`; changes belong in a drop-in: systemctl{flag} edit {name}
[Unit]
Description=Pulse, the autonomic nervous system of this machine{instance}
{mounts}# A guardian never gives up: no limit on how often it may start.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
{run_as}ExecStart=:{python} -m upulse_cli.serve --home {home}
ExecReload=:{python} -m upulse_cli daemon reload --home {home}
Restart=always
RestartSec=100ms
WatchdogSec=30s
TimeoutStartSec=90s
TimeoutStopSec=90s
# What hangs in the kernel or is stopped does not hear the watchdog's SIGABRT.
TimeoutAbortSec=5s
# What Pulse started lives on when Pulse stops, restarts or is killed.
KillMode=process
OOMPolicy=continue
SyslogIdentifier=upulse
# Hosts of rules and guarded processes get control groups of their own, with limits from systemd 254 on.
Delegate=yes
DelegateSubgroup=daemon
# No hardening, limits or priorities here: all that Pulse starts would inherit them.

[Install]
WantedBy={target}
"""

_LEVELS = {"0": "critical", "1": "critical", "2": "critical", "3": "error", "4": "warning"}
"""Severities of syslog, in the words of `daemon.log`."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}
_BACK = {written: plain for plain, written in _ESCAPES.items()}
_SERVES = re.compile(r'^ExecStart=.* -m upulse_cli\.serve --home "((?:[^"\\]|\\.)*)"$', re.MULTILINE)


def unit_text(*, home: Path, python: str, user: bool, run_as: str | None) -> str:
    """The unit that serves `home` with this interpreter.

    user: for the user's own manager, not the system's; run_as: the account of a system unit, None for root.
    """
    quoted = quote(str(home))
    instance = _INSTANCE.fullmatch(home.name)
    return _TEMPLATE.format(
        name=unit_name(home),
        instance=f" ({instance[1]})" if instance else "",
        flag=" --user" if user else "",
        mounts="" if user else f"RequiresMountsFor={quoted}\n",
        run_as=f"User={run_as}\n" if run_as and not user else "",
        python=quote(python),
        home=quoted,
        target="default.target" if user else "multi-user.target",
    )


def unit_name(home: Path) -> str:
    """What the unit of a home is called: `upulse@NAME.service` for an instance's, `~/.upulse-NAME`."""
    instance = _INSTANCE.fullmatch(home.name)
    return f"upulse@{instance[1]}.service" if instance else UNIT_NAME


def quote(word: str) -> str:
    """One word as systemd reads it: C escapes in double quotes, `%` doubled (`$` is literal after `:`)."""
    return '"' + "".join(_ESCAPES.get(char, char) for char in word) + '"'


def served_home(text: str) -> Path | None:
    """The home that a unit of ours serves; None if the text is no unit of ours."""
    found = _SERVES.search(text)
    return Path(re.sub(r"\\.|%%", lambda part: _BACK.get(part[0], part[0]), found[1])) if found else None


_BOOTED = Path("/run/systemd/system")  # what sd_booted(3) looks at
_SYSTEM = Path("/etc/systemd/system")
_PATIENCE = 150.0  # seconds; longer than the unit's own start and stop timeouts


@dataclass(frozen=True, slots=True)
class Unit:
    """An installed unit: its file, its manager (the system's or the user's), and its home."""

    path: Path
    user: bool
    home: Path

    @property
    def name(self) -> str:
        """What systemd calls it."""
        return self.path.name

    def control(self, verb: str) -> None:
        """Start, stop or restart the daemon, and wait until that is done; one that was stopped stays down till the boot."""
        systemctl(verb, self.name, user=self.user)

    def is_active(self) -> bool:
        """Whether systemd reports the daemon active (or reloading)."""
        return _call(("is-active", "--quiet", self.name), self.user).returncode == 0

    def text(self, python: str = sys.executable) -> str:
        """What its file should hold. A system unit runs as the owner of the home, so that the home's files stay theirs."""
        owner = None if self.user else _owner(self.home)
        return unit_text(home=self.home, python=python, user=self.user, run_as=owner)


def install(home: Path, user: bool = False, python: str = sys.executable) -> Unit:
    """Write and enable the unit for `home`, without starting it. Nothing changes if it fails."""
    _demand_manager(user)
    here = Path(os.path.realpath(home))
    unit = Unit(_directory(user) / unit_name(here), user, here)
    before = _demand_free(unit)
    _write(unit.path, unit.text(python))
    try:
        systemctl("daemon-reload", user=user)
        systemctl("enable", unit.name, user=user)
    except PulseError:
        _write(unit.path, before) if before else unit.path.unlink(missing_ok=True)
        raise
    return unit


def uninstall(home: Path) -> Unit:
    """Stop and disable the unit of `home` and remove its file; what Pulse started lives on."""
    unit = _demand_installed(home)
    _demand_manager(unit.user)
    systemctl("disable", "--now", unit.name, user=unit.user)
    unit.path.unlink(missing_ok=True)
    systemctl("daemon-reload", user=unit.user)
    return unit


def installed(home: Path) -> Unit | None:
    """The unit that serves `home`, the system's before the user's; needs no rights and no running systemd."""
    here = Path(os.path.realpath(home))
    return next((unit for unit in units() if unit.home == here), None)


def units() -> Iterator[Unit]:
    """Every unit of ours, the system's before the user's; needs no rights and no running systemd."""
    for user in (False, True):
        directory = _directory(user)
        for path in (directory / UNIT_NAME, *sorted(directory.glob(INSTANCES))):
            if home := served_home(_read(path)):
                yield Unit(path, user, home)


@dataclass(frozen=True)
class SystemdUnit:
    """Implements `DaemonUnit` for the home at this path."""

    home: Path

    def path(self) -> str | None:
        """The path of the unit's file; None if none is installed."""
        unit = installed(self.home)
        return str(unit.path) if unit else None

    def is_active(self) -> bool:
        """Whether systemd reports the daemon active; False without a unit."""
        unit = installed(self.home)
        return unit is not None and unit.is_active()

    def install(self, user: bool) -> str:
        """Write and enable the unit; the path of its file."""
        return str(install(self.home, user).path)

    def start(self) -> None:
        """Start the daemon and wait until it is ready."""
        _demand_installed(self.home).control("start")

    def stop(self) -> None:
        """Stop the daemon and wait until it has drained."""
        _demand_installed(self.home).control("stop")

    def restart(self) -> None:
        """Stop the daemon, start it again, and wait until it is ready."""
        _demand_installed(self.home).control("restart")


def journal_lines(unit: Unit, count: int, follow: bool) -> Iterator[str]:
    """The last lines of its journal as JSON with `at`, `level` and `message`, and then new ones if `follow`."""
    command = ["journalctl", "--user-unit" if unit.user else "-u", unit.name, "-o", "json", "--no-pager"]
    command += ["-n", str(count), *(["--follow"] if follow else [])]
    # The unit's alone are those of the engine's user, too; systemd's words of it are root's, or of the user's manager.
    command += [f"_UID={uid}" for uid in sorted({0, unit.home.stat().st_uid})]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as reader:
            try:
                yield from map(journal_line, reader.stdout or ())
            except BaseException:  # nobody reads on: by itself it would end with the next line, if one comes
                reader.kill()
                raise
    except FileNotFoundError as error:
        raise PulseError("there is no journalctl on this machine") from error
    if reader.returncode:
        raise PulseError(f"journalctl ended with exit {reader.returncode}")


def journal_line(entry: str) -> str:
    """An entry as journalctl writes it in JSON, in the form of a line of `daemon.log`."""
    fields = json.loads(entry)
    severity, message = (
        field_text(fields.get(key)).decode(errors="replace") for key in ("PRIORITY", "MESSAGE")
    )
    at = datetime.fromtimestamp(int(fields["__REALTIME_TIMESTAMP"]) / 1e6, UTC).isoformat()
    return json.dumps(
        {"at": at, "level": _LEVELS.get(severity, "info"), "message": message or "(too long to show)"}
    )


def lingers() -> bool:
    """Whether this user's manager outlives the login (`loginctl enable-linger` makes it so)."""
    return (Path("/var/lib/systemd/linger") / user_name(os.geteuid())).exists()


def systemctl(*args: str, user: bool) -> str:
    """What systemctl printed; raises PulseError with systemctl's own words when it fails."""
    done = _call(args, user)
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise PulseError(f"{_command_line(args, user)}: {words}")
    return done.stdout


def _call(args: tuple[str, ...], user: bool) -> subprocess.CompletedProcess[str]:
    command = ["systemctl", *(["--user"] if user else []), "--no-pager", "--no-ask-password", *args]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    if user:  # the address of the user's manager, which `su` and cron jobs lack
        environment.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    try:
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except FileNotFoundError as error:
        raise PulseError("there is no systemctl on this machine; use: upulse daemon start") from error
    except subprocess.TimeoutExpired as error:
        raise PulseError(
            f"{_command_line(args, user)}: no answer in {_PATIENCE:.0f} s; see: journalctl -u {args[-1]}"
        ) from error


def _command_line(args: tuple[str, ...], user: bool) -> str:
    return " ".join(("systemctl", *(["--user"] if user else []), *args))


def _directory(user: bool) -> Path:
    if not user:
        return _SYSTEM
    return Path(os.environ.get("XDG_CONFIG_HOME") or expand_home("~/.config")) / "systemd" / "user"


def _demand_manager(user: bool) -> None:
    if not _BOOTED.is_dir():
        raise PulseError("systemd does not run this machine, so no unit can be installed; "
                         "use: upulse daemon start")  # fmt: skip
    if not user and os.geteuid() != 0:
        raise PulseError(
            "a unit for the whole machine needs root; use sudo, or give --user for a unit of yours"
        )


def _demand_installed(home: Path) -> Unit:
    if (unit := installed(home)) is None:
        raise PulseError(f"no systemd unit serves {home}; install one with: upulse daemon install")
    return unit


def _demand_free(unit: Unit) -> str:
    """The text of an existing unit file, which must be ours to be replaced."""
    before = _read(unit.path)
    if before and (other := served_home(before)) != unit.home:
        whose = f"serves {other}" if other else "was not written by Pulse"
        raise PulseError(f"{unit.path} is there already and {whose}; remove that one first")
    return before


def _owner(home: Path) -> str | None:
    try:
        uid = home.stat().st_uid
    except FileNotFoundError as error:
        raise PulseError(f"no Pulse home at {home}; make one with: upulse init --home {home}") from error
    if uid and (owner := find_user(uid)) is None:
        raise PulseError(f"{home} belongs to uid {uid}, which has no account to run as")
    return owner.name if uid and owner else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""  # a unit that we cannot read is not one that we wrote


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_plain(path, text.encode(), 0o644)
    except OSError as error:
        raise PulseError(f"cannot write {path}: {error.strerror}") from error
