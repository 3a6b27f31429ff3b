"""`upulse new`: something of your own, with its test, in staging."""

from typing import Annotated

import typer

from upulse_cli.options import HomeDir, open_home
from upulse_cli.output import put, say


def new(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="rule, projection, watcher or executor.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, as quiet-nights or quiet_nights.")],
    home: HomeDir = None,
) -> None:
    """Begin something of your own in staging.

    A rule, projection, watcher or executor, with its test. It is listed in engine.py, and in force once it is promoted.
    """
    from upulse_cli.wiring.engine import begin_in_staging

    for path in begin_in_staging(open_home(home).layout.path, what, name):
        put(str(path))
    say("edit it, see what it would do with: upulse dev, and bring it into force with: upulse promote")
