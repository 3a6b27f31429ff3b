"""The stage of a scene: a home of its own with a daemon of its own on this machine."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.demo_home import filled_settings, kill_started
from pulse_core.app.demo import PATIENCE, DemoStage, Scene, wait_until
from upulse_cli.wiring.daemon_control import daemon_process
from upulse_cli.wiring.home import home_context


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
            shutil.rmtree(place, ignore_errors=True)
