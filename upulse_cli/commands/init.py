"""`upulse init` and `instances`: a new home, and the homes on this machine with their daemons."""

import shlex
from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import put_or_draw, say


def init(
    demo: Annotated[
        bool, typer.Option("--demo", help="Guard one harmless process, to see Pulse work.")
    ] = False,
    engine: Annotated[
        bool, typer.Option("--engine/--no-engine", help="With a repository for your own rules, or without.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
    home: HomeDir = None,
) -> None:
    """Make a home for Pulse.

    Its directory, commented settings, an empty log, and a git repository for your own rules; what is there already
    is kept.
    """
    from upulse_cli.wiring.home import make_home, meant_home
    from upulse_cli.wiring.offline import make_engine

    made = meant_home(home)
    wrote = not made.config.exists()
    make_home(made, demo)
    done = make_engine(made) if engine else ()
    if quiet:
        return
    say(f"{made.path} is a Pulse home.")
    if not wrote:
        say(f"{made.config} was there already and is left as it is.")
    for sentence in done:
        say(sentence)
    named = "" if home is None else f" --home {shlex.quote(home)}"
    if not demo:
        say(f"Next: say what to guard in {made.config}, then check it: upulse config check{named}")
    say(f"Start the daemon: upulse daemon start{named}")


def instances(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the homes on this machine, and their daemons.

    Those are ~/.upulse, ~/.upulse-NAME for each instance, the homes of installed units, and the one that is named.
    """
    from upulse_cli.wiring.daemon_control import known

    nothing = "There is no home; make one with: upulse init"
    put_or_draw(known(home), as_json, "views.status.home_table", nothing)
