"""`upulse replay` and `shadow`: what would these rules have done, or do, without anything coming of it?"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, Since, group, open_home
from upulse_cli.output import draw, put, put_json, say

if TYPE_CHECKING:
    from pulse_core.app.engine.replay import Progress


shadow_app = group("Run other rules beside those in force; nothing comes of what they request.")


@shadow_app.command()
def start(
    revision: Annotated[
        str, typer.Argument(metavar="REVISION", help="staging (as it lies there now), or a commit.")
    ] = "staging",
    home: HomeDir = None,
) -> None:
    """Begin a shadow in the background.

    It folds each tick of the daemon, and writes what it would have requested to shadow.jsonl in the home, and nowhere
    else. It goes on when the terminal is closed, until it is stopped. Prints its process id.
    """
    from upulse_cli.wiring import shadow

    put(str(shadow.start(open_home(home), revision)))
    say("It runs until: upulse shadow stop. What it would have done: upulse shadow report")


@shadow_app.command()
def stop(home: HomeDir = None) -> None:
    """End the shadow."""
    from upulse_cli.wiring import shadow

    say(f"Stopped, process {shadow.stop(open_home(home))}.")


@shadow_app.command()
def report(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show where the shadow differs from what is in force.

    Requests of one key within two seconds count as the same. Since nothing comes of what a shadow requests, it may go
    on requesting where the real one would have been content. Exit code 3 says that they differ.
    """
    from upulse_cli.wiring import shadow

    told = shadow.report(open_home(home))
    if as_json:
        put_json(told)
    else:
        from upulse_cli.views.replay import shadow_shown

        draw(shadow_shown(told))
    if told["differences"]:
        raise typer.Exit(DIFFERS)


DIFFERS = 3


def replay(
    since: Since = "24h",
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="REVISION",
            help="staging (as it lies there), main, a commit, or in-force: whichever was, tick by tick.",
        ),
    ] = "staging",
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="REVISION",
            help="Another one to be compared with, or recorded: what was really emitted.",
        ),
    ] = "main",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show what rules would have done.

    Folds what was recorded through them again, executing nothing; shows what they would have requested, and where that
    differs from other rules, or from what really happened. A request that goes on counts as one. Exit code 3 says that
    it differs, or that rules fail here that do not there.
    """
    from pulse_core.app.engine.replay import compare_revisions
    from upulse_cli.time_args import moment_arg
    from upulse_cli.wiring.engine import workflow_context

    context = workflow_context(open_home(home))
    found = compare_revisions(context, moment_arg(since, "--since") or 0, engine, against, bar())
    if as_json:
        put_json(found.told())
    else:
        from upulse_cli.views.replay import shown

        draw(shown(found))
        for caveat in found.caveats:
            say(caveat)
    if not found.is_alike:
        raise typer.Exit(DIFFERS)


def bar() -> "Progress":
    """Tells how far it is on stderr, if somebody looks."""
    if not sys.stderr.isatty():
        return lambda count, of: None
    return lambda count, of: print(f"\r{count:,} of {of:,} ticks", end="", file=sys.stderr, flush=True)
