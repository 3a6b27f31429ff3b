"""`upulse explain` and `why`: what each rule would do, or would have done, and why not; how an effect came about."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, At, HomeDir, completed_by, open_home
from upulse_cli.output import put_or_draw, say


def explain(
    at: At = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="REVISION",
            help="staging (as it lies there), main, or a commit; else the one in force then.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Fold a snapshot through the rules, executing nothing.

    The survival rules, and inside them plugins' and your own. Shows rule by rule who passed, added or dropped what,
    and why not: which bound, streak, silence or budget.
    """
    import asyncio

    from pulse_core.app import explain as app
    from pulse_core.app.status import why_unheard
    from upulse_cli.time_args import moment_arg
    from upulse_cli.wiring.engine import command_refusal, user_rules

    where = open_home(home)
    asked = app.explain(where, moment_arg(at, "--at"), user_rules(where), engine, command_refusal)

    async def answered() -> app.RuleTrace:
        trace, _ = await asyncio.gather(asked, view())
        return trace

    async def view() -> None:
        import upulse_cli.views.explain  # noqa: F401 - it takes long, and meanwhile the user's rules are waited for

    put_or_draw(asyncio.run(answered()).spelled(), as_json, "views.explain.tree")
    if at is None and (words := why_unheard(where)):
        say(f"Nothing of it is done: {words}")


def why(
    effect: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="An effect's id, enough of it or its key; a process, condition or silence; pulse. Else the last effect.",
            autocompletion=completed_by("processes and effects"),
        ),
    ] = None,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Say why something is as it is.

    A process, condition or silence: its state and why. Then the last effect about it: what made a rule request it, what
    was sensed, in which tick, what was done, and what followed.
    """
    from pulse_core.app.why import why as explained

    put_or_draw(explained(open_home(home), effect).spelled(), as_json, "views.why.tree")
