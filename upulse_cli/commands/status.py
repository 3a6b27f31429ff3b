"""`upulse status`: how everything stands."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.speech import console, put_json, say

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="A live screen; ends with q.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show how everything stands.

    The daemon, the guarded processes with why they stand so, the effects and the ticks.
    """
    from upulse_cli.access import found_home
    from upulse_cli.standing import standing

    where = found_home(home)
    if as_json:
        put_json(standing(where))
    elif watch:
        from upulse_cli.watching import show

        show(where, live=sys.stdout.isatty() and sys.stdin.isatty())
    else:
        from upulse_cli.views.status import overview

        console().print(overview(now := standing(where)))
        tell_of_main(where, now)


def tell_of_main(home: "Home", now: Mapping[str, Any]) -> None:
    """Say it if somebody moved main by hand."""
    if commit := (now.get("engine") or {}).get("commit"):
        from upulse_cli.engine.mainline import glanced

        if words := glanced(home, commit):
            say(words)
