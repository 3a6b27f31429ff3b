"""`upulse status --watch`: what the live screen shows, gathered twice a second, and the key that ends it."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.app.effect_timeline import effect_timeline, last_effects
from pulse_core.app.status import home_status
from upulse_cli.speech import console
from upulse_cli.views.watch import screen
from upulse_cli.wiring.home import home_context

EVERY = 0.5
SHOWN = 8
COURSE_US = 600_000_000


def show(home: Home, live: bool) -> None:
    """Draw the screen until q or Ctrl-C; once, if there is no terminal to draw on."""
    from rich.live import Live

    if not live:
        return console().print(screen(gathered(home)))
    try:
        with keys(), Live(console=console(), screen=True, auto_refresh=False) as drawing:
            while True:
                drawing.update(screen(gathered(home), drawing.console.height), refresh=True)
                if quit_pressed(EVERY):
                    return None
    except KeyboardInterrupt:
        return None


def gathered(home: Home) -> dict[str, Any]:
    """How everything stands, the newest effects and the last ticks, newest first."""
    with SqliteEventReader(home.path) as log, SqliteVitalsReader(home.path) as vitals:
        effects = [effect_timeline(log, wish).spelled() for wish in last_effects(log, SHOWN)]
        ticks = [tick.spelled() for tick in vitals.ticks(SHOWN)]
        now = time.time_ns() // 1000
        samples = [sample.data for sample in vitals.between(now - COURSE_US, now, "system-resource")]
    return {**home_status(home_context(home)), "recent": effects, "ticks": ticks, "courses": courses(samples)}


def courses(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """CPU, memory, load and each disk's use over the last minutes, oldest first."""
    found: dict[str, list[float]] = {}
    for data in samples:
        used = {path: disk.get("used") for path, disk in data.get("disks", {}).items()}
        for name, value in {**{name: data.get(name) for name in ("cpu", "memory", "load1")}, **used}.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return found


@contextmanager
def keys() -> Iterator[None]:
    """Keys are read one by one and not shown meanwhile; Ctrl-C still interrupts."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def quit_pressed(seconds: float) -> bool:
    """Whether q was pressed, or the terminal went away, within this time."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b"")
