"""Builds the text of our unit file, and reads the home back from such a text."""

import re
from pathlib import Path

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
Delegate=no
# No hardening, limits or priorities here: all that Pulse starts would inherit them.

[Install]
WantedBy={target}
"""

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
