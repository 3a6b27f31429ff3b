"""`upulse agents`, `upulse run` and `upulse task pull-request`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from upulse_cli.capabilities.agents.commands import agents, runs

    app.add_typer(agents, name="agents")
    app.add_typer(runs, name="run")
