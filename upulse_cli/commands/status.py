"""`upulse status`: how everything stands."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pulse_core.model.errors import PulseError
from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import draw, put_json, say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext


NOT_RUNNING, WRONG = 3, 4
"""Exit codes of `upulse status --exit-code`; 3 is that of `systemctl status`, too."""


def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="A live screen; ends with q.")] = False,
    as_json: AsJson = False,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="Exit with 3 if no daemon runs, with 4 if something is wrong."),
    ] = False,
    home: HomeDir = None,
) -> None:
    """Show how everything stands.

    The daemon, the guarded processes with why they stand so, the effects and the ticks.
    """
    from pulse_core.app.status import home_status, is_wrong

    where = open_home(home)
    if as_json:
        put_json(now := home_status(where))
    elif watch:
        from upulse_cli.views.watch import show

        show(where, live=sys.stdout.isatty() and sys.stdin.isatty())
    else:
        from upulse_cli.views.status import overview

        draw(overview(now := home_status(where)))
        say_if_main_moved(where, now)
    if exit_code and not watch:
        if now["daemon"]["state"] in ("stopped", "not-answering"):
            raise typer.Exit(NOT_RUNNING)
        if is_wrong(now):
            raise typer.Exit(WRONG)


def say_if_main_moved(home: "HomeContext", now: Mapping[str, Any]) -> None:
    """Say it if somebody moved main by hand."""
    if commit := (now.get("engine") or {}).get("commit"):
        from upulse_cli.wiring.home import main_commit

        try:
            main = main_commit(home.layout)
        except PulseError as error:
            say(str(error))
            return
        if main not in ("", commit):  # git is slow to import, and asked only then
            from pulse_core.app.engine.promote import main_moved_by_hand
            from upulse_cli.wiring.engine import workflow_context

            if words := main_moved_by_hand(workflow_context(home), commit):
                say(words)
