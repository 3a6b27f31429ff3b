"""The shadow as a process in the background: begun, ended, and the program that it is."""

import argparse
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

from pulse_adapters.config.home import Home
from pulse_adapters.files.shadow_log import FileShadowLog
from pulse_adapters.ipc.lock import HomeLock, holder
from pulse_core import __version__
from pulse_core.app.status import why_unheard
from pulse_core.model.errors import HomeBusy, PulseError
from pulse_core.ports.daemon_client import LockHolder
from upulse_cli.wiring.home import home_context

PATIENCE = 60.0
"""Seconds that a shadow may take to load its rules."""
ENDING = 10.0
LOCK = "shadow"
"""In the home's run/: held by the shadow for as long as it lives."""
READY = "ready"


def running(home: Home) -> LockHolder | None:
    """The shadow that runs, if one does."""
    return holder(home.run / LOCK)


def start(home: Home, word: str) -> int:
    """Begin a shadow of this revision in the background; its process. Raises PulseError with the reason if it can't."""
    if found := running(home):
        raise PulseError(f"a shadow runs already (process {found.pid}); end it with: upulse shadow stop")
    if why := why_unheard(home_context(home)):
        raise PulseError(f"{why}; a shadow needs its ticks")
    read, write = os.pipe()
    argv = (sys.executable, "-P", "-m", "upulse_cli.shadow_process")
    words = ("--home", str(home.path), "--engine", word, "--tell", str(write))
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


def stop(home: Home) -> int:
    """End the shadow; its process. Raises PulseError if there is none."""
    if (found := running(home)) is None:
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


def main() -> None:
    """Be a shadow. Whoever has started it reads one line: `ready`, or why not."""
    from pulse_core.app.engine.shadow import ShadowTarget, run_shadow  # whoever starts one need not bear them
    from upulse_cli.run_loop import run_until_ended
    from upulse_cli.wiring.engine import workflow_context

    parser = argparse.ArgumentParser(prog="upulse_cli.shadow_process", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--tell", type=int, required=True)
    asked = parser.parse_args()
    home = Home.resolve(asked.home)

    def tell(words: str) -> None:
        with suppress(OSError):
            os.write(asked.tell, words.encode())
            os.close(asked.tell)

    os.nice(5)
    try:
        with HomeLock(home.run / LOCK, __version__):
            engine = workflow_context(home, is_live=True)
            what = ShadowTarget(engine, engine.revision(asked.engine), FileShadowLog(home.path))
            run_until_ended(run_shadow(what, lambda: tell(READY)))
    except HomeBusy as error:
        tell(f"another one runs (process {error.pid})")
        raise
    except Exception as error:
        tell(str(error) if isinstance(error, PulseError) else f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
