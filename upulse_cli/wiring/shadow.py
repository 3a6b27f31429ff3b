"""The shadow of a home: begun and ended as a process in the background, and what it has written."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from pulse_adapters.files.shadow_log import shadow_lines
from pulse_adapters.ipc.lock import holder
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.shadow import shadow_report
from pulse_core.app.status import why_unheard
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.home_status import LockHolder

PATIENCE = 60.0
"""Seconds that a shadow may take to load its rules."""
ENDING = 10.0
LOCK = "shadow"
"""In the home's run/: held by the shadow for as long as it lives."""
READY = "ready"


def running(home: HomeLayout) -> LockHolder | None:
    """The shadow that runs, if one does."""
    return holder(home.run / LOCK)


def start(home: HomeContext, word: str) -> int:
    """Begin a shadow of this revision in the background; its process. Raises PulseError with the reason if it can't."""
    if found := running(home.layout):
        raise PulseError(f"a shadow runs already (process {found.pid}); end it with: upulse shadow stop")
    if why := why_unheard(home):
        raise PulseError(f"{why}; a shadow needs its ticks")
    read, write = os.pipe()
    argv = (sys.executable, "-P", "-m", "upulse_cli.shadow_process")
    words = ("--home", str(home.layout.path), "--engine", word, "--tell", str(write))
    nowhere = subprocess.DEVNULL
    with open(read, "rb", buffering=0) as heard:
        child = subprocess.Popen(
            (*argv, *words), pass_fds=(write,), stdin=nowhere, stdout=nowhere, stderr=nowhere,
            start_new_session=True,
        )  # fmt: skip
        os.close(write)
        said = _heard(heard.fileno())
    if said != READY:
        child.kill()
        child.wait()
        raise PulseError(f"no shadow of {word}: {said or 'it did not begin'}")
    child.returncode = 0  # it is not waited for: it goes on without us
    return child.pid


def _heard(pipe: int) -> str:
    """What it says until it says no more."""
    said, until = b"", time.monotonic() + PATIENCE
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (piece := os.read(pipe, 4096)):
            break
        said += piece
    return said.decode("utf-8", "replace")


def stop(home: HomeContext) -> int:
    """End the shadow; its process. Raises PulseError if there is none."""
    if (found := running(home.layout)) is None:
        raise PulseError("no shadow runs; start one with: upulse shadow start")
    end(found)
    return found.pid


def end(found: LockHolder) -> None:
    """Have a shadow end, by force if it must be."""
    try:
        process = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return
    try:
        for number, seconds in ((signal.SIGTERM, ENDING), (signal.SIGKILL, ENDING)):
            signal.pidfd_send_signal(process, number)  # type: ignore[attr-defined, unused-ignore]
            if select.select([process], [], [], seconds)[0]:
                break
    finally:
        os.close(process)


def end_if_running(home: HomeLayout) -> str:
    """End the shadow if one runs; what is to be said of that, or nothing."""
    if (found := running(home)) is None:
        return ""
    end(found)
    return (
        f"the shadow (process {found.pid}) was ended, since it followed the log that was there; begin another"
        " one with: upulse shadow start"
    )


def report(home: HomeContext) -> Mapping[str, Any]:
    """What the last shadow wished beside what production did. Raises PulseError if there was none."""
    return shadow_report(home, list(shadow_lines(home.layout.path)), running(home.layout) is not None)
