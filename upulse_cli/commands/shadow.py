"""`upulse shadow`: other rules beside those in force, on the same ticks, without anything coming of it."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, group, open_home
from upulse_cli.output import console, put, put_json, say

DIFFERS = 3

app = group("Run other rules beside those in force; nothing comes of what they wish.")


@app.command()
def start(
    revision: Annotated[
        str, typer.Argument(metavar="REVISION", help="staging (as it lies there now), or a commit.")
    ] = "staging",
    home: HomeDir = None,
) -> None:
    """Begin a shadow in the background.

    It folds each tick of the daemon, and writes what it would have wished to shadow.jsonl in the home, and nowhere
    else. It goes on when the terminal is closed, until it is stopped. Prints its process id.
    """
    from upulse_cli.wiring import shadow

    put(str(shadow.start(open_home(home), revision)))
    say("It runs until: upulse shadow stop. What it would have done: upulse shadow report")


@app.command()
def stop(home: HomeDir = None) -> None:
    """End the shadow."""
    from upulse_cli.wiring import shadow

    say(f"Stopped, process {shadow.stop(open_home(home))}.")


@app.command()
def report(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show where the shadow differs from what is in force.

    Wishes of one key within two seconds count as the same. Since nothing comes of what a shadow wishes, it may go on
    wishing where the real one would have been content. Exit code 3 says that they differ.
    """
    from upulse_cli.wiring import shadow

    told = shadow.report(open_home(home))
    if as_json:
        put_json(told)
    else:
        from upulse_cli.views.replay import shadow_shown

        console().print(shadow_shown(told))
    if told["differences"]:
        raise typer.Exit(DIFFERS)
