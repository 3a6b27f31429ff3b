"""`upulse task`, `upulse project` and `upulse board`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from upulse_cli.capabilities.tasks.commands import tasks
    from upulse_cli.capabilities.tasks.projects import board, projects

    app.add_typer(tasks, name="task")
    app.add_typer(projects, name="project")
    app.command()(board)
