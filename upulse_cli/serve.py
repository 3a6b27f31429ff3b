"""The daemon's process: `python -m upulse_cli.serve`. Plain arguments, so that no command line stays in memory."""

import argparse
import asyncio
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.sqlite.opening import Opening
from pulse_core import __version__
from pulse_core.model.errors import NoHome, PulseError
from upulse_cli.logs import speak
from upulse_cli.wiring import real_daemon

LOG = logging.getLogger("pulse.daemon")
UNDER_SYSTEMD = 5.0
"""Seconds to wait before a start that failed ends, under systemd: it would be tried again ten times a second."""


def main() -> int:
    """Run the daemon of a home until a signal ends it; the exit code."""
    options = arguments()
    home = Home(Path(options.home))
    speak(home.daemon_log if options.background else None)
    faulthandler.enable()
    try:
        asyncio.run(live(home, options))
    except PulseError as error:
        LOG.error("%s", error)
        if os.environ.get("INVOCATION_ID"):
            time.sleep(UNDER_SYSTEMD)
        return 1
    except ExceptionGroup as group:
        LOG.critical("the daemon failed", exc_info=group)
        return 70
    return 0


def arguments() -> argparse.Namespace:
    """What the command line or the unit file says."""
    parser = argparse.ArgumentParser(prog="upulse_cli.serve", description=main.__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--background", action="store_true", help="log into the home instead of stderr")
    parser.add_argument("--accept-damage", action="store_true", help="set damaged stores aside and go on")
    return parser.parse_args()


async def live(home: Home, options: argparse.Namespace) -> None:
    """Take the home, run, and give it back."""
    if not home.exists():
        raise NoHome(str(home.path))
    with HomeLock(home.lock, __version__) as lock, own_pid(home.pid):
        boot = SystemClock().now().boot
        rebooted = lock.previous is not None and lock.previous.boot != boot
        async with real_daemon(home, Opening(rebooted, options.accept_damage)) as daemon:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop.set)
            loop.add_signal_handler(signal.SIGHUP, daemon.request_reload)
            await daemon.run(stop)


@contextmanager
def own_pid(path: Path) -> Iterator[None]:
    """Leave the process id in a file, for tools that want one."""
    path.write_text(f"{os.getpid()}\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
