"""The daemon and its settings: does it run, from what, and with what it needs?"""

import os
import pwd
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pulse_adapters.notify.addresses import resolved
from pulse_adapters.systemd import Unit, manager, unit_text
from pulse_core import __version__
from pulse_core.model.errors import PulseError
from pulse_core.settings import Settings
from upulse_cli.doctor.findings import FAIL, OK, WARN, Finding, Ground
from upulse_cli.doctor.stores import newest

VARIABLE = "env:"


def daemon(ground: Ground) -> Iterator[Finding]:
    """Whether it answers."""
    if isinstance(ground.answer, Mapping):
        told = ground.answer["daemon"]
        words = f"it answers: process {told['pid']}, version {told['version']}"
        other = told["version"] != __version__
        remedy = f"upulse daemon restart, since this is {__version__}" if other else ""
        yield Finding("daemon", WARN if other else OK, words, remedy)
    elif ground.holder is None:
        yield Finding("daemon", WARN, "no daemon runs: nothing is guarded", "upulse daemon start")
    else:
        words = f"process {ground.holder.pid} holds the home and does not answer: {ground.answer}"
        yield Finding("daemon", FAIL, words, "upulse daemon logs; if it stays so: upulse daemon restart")


def settings(ground: Ground) -> Iterator[Finding]:
    """Whether they can be used, and are those in force."""
    found, faults = ground.settings
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        yield Finding("settings", FAIL, f"{faults[0]}{more}", "mend it, then: upulse config check")
        return
    loaded = newest(ground.home, "settings-loaded")
    if isinstance(ground.answer, Mapping) and loaded and loaded[1].get("digest") != found.digest:
        yield Finding(
            "settings", WARN, "config.toml was changed and is not in force yet", "upulse daemon reload"
        )
        return
    yield Finding("settings", OK, f"{ground.home.config} is good")


def environment(ground: Ground) -> Iterator[Finding]:
    """Whether the daemon has the variables that the settings name."""
    names = sorted(_variables(ground.settings[0]))
    if not names:
        return
    found = _environment_of(ground)
    whose = "the daemon's environment" if found is not None else "this environment (no daemon's can be read)"
    missing = [
        name for name in names if not resolved(VARIABLE + name, os.environ if found is None else found)
    ]
    if missing:
        words = f"not set in {whose}: {', '.join(missing)}"
        yield Finding("environment", FAIL if found is not None else WARN, words,
                      "set it where the daemon is started (Environment= of its unit), and restart it")  # fmt: skip
    else:
        yield Finding("environment", OK, f"set in {whose}: {', '.join(names)}")


def _variables(settings: Settings) -> set[str]:
    urls = (*settings.notify.urls, settings.heartbeat.url or "")
    return {url.removeprefix(VARIABLE) for url in urls if url.startswith(VARIABLE)}


def _environment_of(ground: Ground) -> Mapping[str, str] | None:
    """The variables that the daemon was started with, None if nobody can tell."""
    if ground.holder is None or not isinstance(ground.answer, Mapping):
        return None
    try:
        raw = Path(f"/proc/{ground.holder.pid}/environ").read_bytes()
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(text) for name, _, text in pairs}


def unit(ground: Ground) -> Iterator[Finding]:
    """Whether systemd runs it, from a unit file that is up to date."""
    installed = manager.installed(ground.home.path)
    if installed is None:
        if Path("/run/systemd/system").is_dir():
            yield Finding("unit", WARN, "systemd does not start it at boot, or again if it dies",
                          "upulse daemon install")  # fmt: skip
        else:
            yield Finding(
                "unit",
                OK,
                "systemd does not run this machine; whatever starts the daemon must keep it running",
            )
        return
    text = installed.path.read_text()
    if text == _wanted(installed):
        yield Finding("unit", OK, f"{installed.path} is up to date")
        return
    gone = not _interpreter(text).exists()
    words = (
        f"{installed.path} names an interpreter that is gone"
        if gone
        else f"{installed.path} is of another version"
    )
    yield Finding("unit", FAIL if gone else WARN, words,
                  f"upulse daemon install{' --user' if installed.user else ''}", lambda: _rewritten(installed))  # fmt: skip


def _wanted(unit: Unit) -> str:
    uid = unit.home.stat().st_uid
    owner = None
    if uid and not unit.user:
        try:
            owner = pwd.getpwuid(uid).pw_name
        except KeyError:
            raise PulseError(f"{unit.home} belongs to uid {uid}, which has no account to run as") from None
    return unit_text(home=unit.home, python=sys.executable, user=unit.user, run_as=owner)


def _interpreter(text: str) -> Path:
    line = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "")
    return Path(line.partition('"')[2].partition('"')[0] or "/nowhere")


def _rewritten(unit: Unit) -> str:
    manager.install(unit.home, unit.user)
    return f"{unit.path} is written anew; it counts from the next start on"
