"""`upulse why`: how an effect came about, and what came of it."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, completed_by, open_home
from upulse_cli.output import console, put_json


def why(
    effect: Annotated[
        str | None,
        typer.Argument(
            metavar="EFFECT",
            help="Its id or enough of it, its key, or a process; else the last.",
            autocompletion=completed_by("processes and effects"),
        ),
    ] = None,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Explain an effect, from sample to outcome.

    What was sensed, in which tick, which rule wished it and why, what was done, and what followed.
    """
    from pulse_core.app.why import why as explained

    told = explained(open_home(home), effect).spelled()
    if as_json:
        return put_json(told)
    from upulse_cli.views.why import tree

    return console().print(tree(told))
