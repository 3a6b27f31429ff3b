"""The stage of a scene: a home of its own with a daemon of its own on this machine."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.demo_home import filled_settings, kill_started
from pulse_core.app.context import HomeContext
from pulse_core.app.demo import PATIENCE, Scene, wait_until
from upulse_cli.wiring.daemon_control import daemon_process
from upulse_cli.wiring.home import home_context


@dataclass(frozen=True)
class RealStage:
    """Implements `DemoStage` with real processes."""

    home: HomeContext

    def kill(self, pid: int) -> None:
        """SIGKILL."""
        os.kill(pid, signal.SIGKILL)

    def freeze(self, pid: int) -> None:
        """SIGSTOP."""
        os.kill(pid, signal.SIGSTOP)

    def start_daemon(self) -> None:
        """Start the daemon in the background."""
        daemon_process(Home(self.home.layout.path)).start()

    def write_log(self, line: str) -> None:
        """Append to the log in the home."""
        with (self.home.layout.path / "agent.log").open("a") as log:
            log.write(f"{line}\n")


@contextmanager
def demo_stage(scene: Scene) -> Iterator[RealStage]:
    """A home for this scene with its daemon running; everything of it is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="pulse-demo-"))
    home = Home(place / "home")
    home.create()
    home.config.write_text(filled_settings(scene.settings, home.path))
    daemon = daemon_process(home)
    try:
        daemon.start()
        yield RealStage(home_context(home))
    finally:
        try:
            daemon.stop(PATIENCE)
        finally:  # only now nothing more is started
            wait_until(lambda: not kill_started(home.path), "the end of what was started")
            shutil.rmtree(place, ignore_errors=True)
