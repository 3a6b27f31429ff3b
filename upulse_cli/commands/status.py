"""`upulse status`: how everything stands."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import console, put_json, say

if TYPE_CHECKING:
    from pulse_core.home import HomeLayout


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
    from pulse_core.app.status import home_status
    from upulse_cli.wiring.home import found_home, home_context

    where = found_home(home)
    context = home_context(where)
    if as_json:
        put_json(home_status(context))
    elif watch:
        from upulse_cli.views.live_screen import show

        show(context, live=sys.stdout.isatty() and sys.stdin.isatty())
    else:
        from upulse_cli.views.status import overview

        console().print(overview(now := home_status(context)))
        tell_of_main(where, now)


def tell_of_main(home: "HomeLayout", now: Mapping[str, Any]) -> None:
    """Say it if somebody moved main by hand."""
    if commit := (now.get("engine") or {}).get("commit"):
        from upulse_cli.wiring.home import main_commit

        if main_commit(home) not in ("", commit):  # git is slow to import, and asked only then
            from pulse_core.app.engine.promote import main_moved_by_hand
            from upulse_cli.wiring.workflow import workflow_context

            if words := main_moved_by_hand(workflow_context(home), commit):
                say(words)
