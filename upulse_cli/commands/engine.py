"""`upulse engine` and `plugins`: how the user's rules stand, what became of them, and what installed packages add."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, Why, group, open_home
from upulse_cli.output import put, put_or_draw, say


def plugins(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the plugins that are installed, and what they bring.

    A plugin is a package with an entry point in the group pulse.plugins, which names one pulse_core.Plugin. It is
    installed beside Pulse, and the daemon finds it when it starts; its rules run in the rule host.
    """
    from upulse_cli.wiring.engine import plugin_contents

    nothing = "No plugin is installed; one is a package with an entry point in the group pulse.plugins."
    put_or_draw(plugin_contents(), as_json, "views.engine.plugin_table", nothing)


app = group("The user's rules: how they stand, and their history.")


@app.command()
def status(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show how your own rules stand.

    What is in force, what waits in staging, and what is wrong.
    """
    from pulse_core.app.engine.history import engine_status
    from upulse_cli.wiring.engine import workflow_context

    put_or_draw(engine_status(workflow_context(open_home(home))), as_json, "views.engine.shown")


@app.command()
def disable(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Run none of your own rules, nor those of plugins.

    Their watchers and executors are not run either. At once, and at every start, until `upulse engine enable`, a
    promote or a rollback. The survival rules go on.
    """
    from upulse_cli.commands.daemon import record

    record(home, "engine-disabled", why, as_json, "Disabled. Run it again with: upulse engine enable")


@app.command()
def enable(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Run the engine again after `upulse engine disable`."""
    from pulse_core.app.state import current_state
    from pulse_core.model.names import ENGINE
    from upulse_cli.commands.daemon import record

    record(home, "engine-enabled", why, as_json, "Enabled.")
    if ENGINE in current_state(open_home(home)).control.left_out:
        say("Safe mode leaves it out; run it with: upulse daemon restart --normal")


@app.command()
def log(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """List promotes and rollbacks.

    Who, why, and how it went since.
    """
    from pulse_core.app.engine.history import turns
    from upulse_cli.wiring.engine import workflow_context

    nothing = "Nothing was promoted yet; a daemon that starts promotes the first commit."
    put_or_draw(turns(workflow_context(open_home(home)), limit), as_json, "views.engine.history", nothing)


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A branch or a commit.")] = "main",
    new: Annotated[str, typer.Argument(metavar="NEW", help="Another one.")] = "staging",
    home: HomeDir = None,
) -> None:
    """Show what differs between two revisions.

    By default between production and staging; of staging only what is committed.
    """
    from upulse_cli.wiring.engine import workflow_context

    repository = workflow_context(open_home(home)).repository
    put(repository.diff(repository.resolve(old), repository.resolve(new)).rstrip("\n"))


@app.command()
def show(
    commit: Annotated[str, typer.Argument(metavar="COMMIT", help="A branch or a commit.")] = "main",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show one promote or rollback.

    With its gates, its reason and its files.
    """
    from pulse_core.app.engine.history import turn
    from upulse_cli.wiring.engine import workflow_context

    put_or_draw(turn(workflow_context(open_home(home)), commit), as_json, "views.engine.details")
