"""`upulse state`: what the log says, now or at a moment in the past."""

from typing import Annotated

import typer

from upulse_cli.options import HomeDir, completed_by, open_home
from upulse_cli.output import put_json


def state(
    part: Annotated[
        str | None,
        typer.Argument(
            metavar="PART",
            help="Only this projection, as `processes`; else all.",
            autocompletion=completed_by("projections"),
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="A moment: 10m ago, or in ISO 8601; else now.")
    ] = None,
    home: HomeDir = None,
) -> None:
    """Show what the log says, now or at a moment.

    Every projection as JSON: the log folded up to the last event before that moment.
    """
    from pulse_core.app.projections import described_projections
    from upulse_cli.output import say
    from upulse_cli.time_args import moment_arg

    found = described_projections(open_home(home), moment_arg(at, "--at"), part)
    for words in found.caveats:
        say(words)
    put_json(found.spelled(part))
