"""`upulse instances`: the homes on this machine, and their daemons."""

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import console, put_json, say


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(instances)


def instances(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the homes on this machine, and their daemons.

    Those are ~/.upulse, ~/.upulse-NAME for each instance, the homes of installed units, and the one that is named.
    """
    from upulse_cli.wiring.instances import known

    found = known(home)
    if as_json:
        return put_json(found)
    if not found:
        return say("There is no home; make one with: upulse init")
    from upulse_cli.views.instances import table

    return console().print(table(found))
