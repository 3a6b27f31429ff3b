"""`upulse status --watch`: the live screen, drawn twice a second, and the key that ends it."""

import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from pulse_core.app.context import HomeContext
from pulse_core.app.overview import overview
from upulse_cli.output import console
from upulse_cli.run_loop import q_pressed
from upulse_cli.views.watch import screen

EVERY = 0.5


def show(home: HomeContext, live: bool) -> None:
    """Draw the screen until q or Ctrl-C; once, if there is no terminal to draw on."""
    from rich.live import Live

    if not live:
        return console().print(screen(overview(home)))
    try:
        with keys(), Live(console=console(), screen=True, auto_refresh=False) as drawing:
            while True:
                drawing.update(screen(overview(home), drawing.console.height), refresh=True)
                if quit_pressed(EVERY):
                    return None
    except KeyboardInterrupt:
        return None


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
    return bool(ready) and q_pressed()
