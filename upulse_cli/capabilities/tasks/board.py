"""`upulse board`: the tasks of a project in their columns."""

from itertools import chain
from typing import Annotated

import typer

from upulse_cli.capabilities.tasks.current import current_tasks, project_names
from upulse_cli.options import AsJson, HomeDir, completed_by, open_home
from upulse_cli.output import console, put_line


def board(
    project: Annotated[
        str, typer.Argument(help="Its name; else all.", autocompletion=completed_by(project_names))
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again as it changes, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show the tasks in their columns."""
    from pulse_core.app.follow import follow
    from pulse_core.tasks.admission import known_project
    from pulse_core.tasks.events import KINDS
    from pulse_core.tasks.listing import board_json
    from upulse_cli.capabilities.tasks.views import boards

    where = open_home(home)
    known = current_tasks(where)
    if project:
        known_project(project, known)
    with where.events() as log:
        head = log.head().seq
    changes = follow(where, head, [kind.kind for kind in KINDS]) if watch else ()
    states = chain((known,), (current_tasks(where) for _ in changes))
    if as_json:
        for state in states:
            put_line(board_json(state, project, where.clock.now()))
    elif not watch:
        console().print(boards(known, project))
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            for state in states:
                live.update(boards(state, project), refresh=True)
