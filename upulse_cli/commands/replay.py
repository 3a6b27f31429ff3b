"""`upulse replay`: what would these rules have done?"""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import console, put_json, say

if TYPE_CHECKING:
    from pulse_core.app.engine.replay import Progress

DIFFERS = 3


def replay(
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="From when on, as 24h, or a time in ISO 8601.")
    ] = "24h",
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

    Folds what was recorded through them again, executing nothing; shows what they would have wished, and where that
    differs from other rules, or from what really happened. A wish that goes on counts as one. Exit code 3 says that
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

        console().print(shown(found))
        for caveat in found.caveats:
            say(caveat)
    if not found.is_alike:
        raise typer.Exit(DIFFERS)


def bar() -> "Progress":
    """Tells how far it is on stderr, if somebody looks."""
    if not sys.stderr.isatty():
        return lambda count, of: None
    return lambda count, of: print(f"\r{count:,} of {of:,} ticks", end="", file=sys.stderr, flush=True)
