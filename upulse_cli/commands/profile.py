"""`upulse profile`: what each part of Pulse costs."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import console, put_json, say


def profile(
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Ticks from when on: 1h ago, or in ISO 8601.")
    ] = "1h",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show what each watcher and each rule costs.

    Of each watcher its newest looks, as the running daemon has measured them; of each rule its part of the
    recorded ticks.
    """
    from pulse_core.app.profile import profile as costs
    from upulse_cli.time_args import moment_arg
    from upulse_cli.wiring.home import child_costs

    told = costs(open_home(home), moment_arg(since, "--since") or 0, child_costs)
    if as_json:
        return put_json(told)
    if told["watchers"] is None:
        say(
            "No daemon answers, so nobody can tell what its watchers cost; what follows is from recorded ticks."
        )
    if not told["rules"]:
        say("No tick was recorded in that time; choose a longer --since, or see: upulse status")
    from upulse_cli.views.profile import tables

    return console().print(tables(told))
