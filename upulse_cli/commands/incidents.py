"""`upulse incidents`: what happened, what was done, did it help."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import console, put_json


def incidents(
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="From when on: 24h ago, or in ISO 8601.")
    ] = "24h",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Tell what happened, and what was done.

    One story an episode: what was seen, what Pulse did about it, and whether it helped.
    """
    from pulse_core.app import incidents as app
    from upulse_cli.time_args import moment_arg

    found = app.incidents(open_home(home), moment_arg(since, "--since"))
    told = [one.spelled() for one in found]
    if as_json:
        return put_json(told)
    from upulse_cli.views.incidents import tree

    return console().print(tree(told, since))
