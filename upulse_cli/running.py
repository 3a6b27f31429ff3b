"""The daemon as a process in the background: begun, waited for, ended. (With a unit, systemd does all this.)"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import holder
from pulse_core.model.errors import HomeBusy, NotAnswering, PulseError
from upulse_cli.tail import last_lines

READY = 10.0
"""Seconds in which a daemon is ready, or is left to go on by itself."""

_STEP = 0.02
Argv = tuple[str, ...]


def serving(home: Home, *more: str) -> Argv:
    """The command that is the daemon. `-P`: files where it is started must not pass for Python's own."""
    return (sys.executable, "-P", "-m", "upulse_cli.serve", "--home", str(home.path), *more)


def demand_free(home: Home) -> None:
    """Raise HomeBusy if somebody holds the home."""
    if held := holder(home.lock):
        raise HomeBusy(str(home.path), held.pid)


def begin(home: Home, *more: str) -> Mapping[str, Any]:
    """Start a daemon in a session of its own, and wait until it is ready; what it says of itself."""
    demand_free(home)
    home.outputs.mkdir(mode=0o700, exist_ok=True)
    with home.daemon_log.open("ab") as log:
        before = log.tell()
        child = subprocess.Popen(
            serving(home, "--background", *more),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until, daemon = time.monotonic() + READY, None
    while time.monotonic() < until:
        if child.poll() is not None:
            raise PulseError(_ended(home, child.returncode, before))
        if (daemon := _answer(home)) and daemon["pid"] == child.pid and daemon["state"] != "starting":
            return daemon
        time.sleep(_STEP)
    if daemon and daemon["pid"] == child.pid:
        return daemon  # it is not ready, but does what it can
    child.returncode = 0  # it is not waited for: it goes on without us
    raise PulseError(
        f"the daemon (process {child.pid}) does not answer after {READY:g} s, but lives; "
        "it may have a long log to read: see upulse daemon logs, then upulse status"
    )


def _answer(home: Home) -> Mapping[str, Any] | None:
    try:
        with Client(home.socket, timeout=1.0) as client:
            daemon: Mapping[str, Any] = client.ask("status")["daemon"]
            return daemon
    except NotAnswering:
        return None


def _ended(home: Home, code: int, before: int) -> str:
    """What the daemon said before it ended, in its own words."""
    how = f"exit {code}" if code >= 0 else f"signal {-code}"
    said = "\n".join(last_lines(home.daemon_log, 10, before))
    return f"the daemon did not start ({how}):\n{said}" if said else f"the daemon did not start ({how})"


def end(home: Home, patience: float) -> int | None:
    """Ask the daemon to stop and wait until it has; its pid, or None if there was none."""
    held = holder(home.lock)
    if held is None:
        return None
    try:
        process = os.pidfd_open(held.pid)
    except ProcessLookupError:
        return None
    try:
        if (again := holder(home.lock)) is None or again.pid != held.pid:
            return None
        signal.pidfd_send_signal(process, signal.SIGTERM)  # type: ignore[attr-defined, unused-ignore]
        _wait(process, held.pid, patience)
    except PermissionError as error:
        raise PulseError(f"process {held.pid} may not be stopped by this user; ask its owner") from error
    finally:
        os.close(process)
    return held.pid


def _wait(process: int, pid: int, patience: float) -> None:
    """Until the process has ended; its pidfd is readable then."""
    ended, _, _ = select.select([process], [], [], 1.0)
    if not ended:
        print(f"waiting for process {pid} to drain …", file=sys.stderr)
        ended, _, _ = select.select([process], [], [], patience)
    if not ended:
        raise PulseError(
            f"process {pid} was asked to stop and still runs after {patience + 1:.0f} s; see upulse daemon logs; "
            f"kill -9 {pid} ends it, and nothing recorded is lost"
        )


def replace_by(argv: Argv) -> None:
    """Become this command, so that nothing of the command line stays in memory."""
    sys.stdout.flush()
    os.execv(argv[0], argv)
