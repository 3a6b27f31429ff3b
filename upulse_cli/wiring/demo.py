"""The stage of a scene: a home of its own with a daemon of its own on this machine."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.marked_processes import find_bearers
from pulse_adapters.workers.host_groups import end_hosts_left_over
from pulse_core.app.demo import PATIENCE, DemoStage, Scene, wait_until
from upulse_cli.wiring.daemon_control import daemon_process
from upulse_cli.wiring.home import home_context


def filled_settings(template: str, home: Path) -> str:
    """The settings of a scene: {python}, a free {port} and the {home} are filled in, doubled braces are braces."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    for name, value in (("python", f'"{sys.executable}"'), ("port", port), ("home", str(home))):
        template = template.replace(f"{{{name}}}", value)
    return template.replace("{{", "{").replace("}}", "}")


def kill_started(home: Path) -> Sequence[int]:
    """Kill what the home's daemons have started, with what that has started; the pids of those that lived."""
    left = [one.pid for one in asyncio.run(find_bearers(which=lambda one: one.name == f"demo@{home}"))]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


@contextmanager
def demo_stage(scene: Scene) -> Iterator[DemoStage]:
    """A home for this scene with its daemon running; everything of it is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="pulse-demo-"))
    home = Home(place / "home")
    home.create()
    home.config.write_text(filled_settings(scene.settings, home.path))
    daemon = daemon_process(home)
    try:
        daemon.start()
        yield DemoStage(home_context(home), daemon.start)
    finally:
        try:
            daemon.stop(PATIENCE)
        finally:  # only now nothing more is started
            wait_until(lambda: not kill_started(home.path), "the end of what was started")
            end_hosts_left_over(home.path)  # and the groups, which nobody could tell for its own any more
            shutil.rmtree(place, ignore_errors=True)
