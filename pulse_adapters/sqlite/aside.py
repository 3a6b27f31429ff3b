"""Where what was damaged is kept: numbered directories in the home's `damaged/`."""

from pathlib import Path

from pulse_core.home import HomeLayout


def new_aside(home: HomeLayout) -> Path:
    """A new numbered directory in the home's `damaged/`."""
    home.damaged.mkdir(mode=0o700, exist_ok=True)
    taken = [int(kept.name) for kept in home.damaged.iterdir() if kept.name.isdigit()]
    aside = home.damaged / str(max(taken, default=0) + 1)
    aside.mkdir(mode=0o700)
    return aside
