"""`upulse project`: what tasks belong to; `upulse board`: those of a project in their columns."""

import sys
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from upulse_cli.capabilities.tasks.current import current_tasks, project_names
from upulse_cli.options import AsJson, HomeDir, completed_by, group, open_home
from upulse_cli.output import CommandResult, console, draw, put_json, put_line, put_or_draw

projects = group("Projects, which tasks belong to: a repository, columns, and who may do their tasks.")

Name = Annotated[str, typer.Argument(help="Its name.", autocompletion=completed_by(project_names))]


@projects.change()
def add(
    name: Annotated[str, typer.Argument(help="Its name: letters, digits, '.', '_' and '-'.")],
    repository: Annotated[
        str | None, typer.Option("--repository", metavar="DIR", help="Its git repository.")
    ] = None,
    base: Annotated[str | None, typer.Option("--base", help="Where its tasks' branches begin; main.")] = None,
    column: Annotated[list[str] | None, typer.Option("--column", help="A column; repeat in order.")] = None,
    member: Annotated[list[str] | None, typer.Option("--member", help="Who may do its tasks.")] = None,
    review: Annotated[
        bool | None, typer.Option("--review/--no-review", help="A person closes what was done.")
    ] = None,
    home: HomeDir = None,
) -> CommandResult:
    """Add a project, or change what is said of one."""
    from dataclasses import asdict

    from pulse_core.app.append import append
    from pulse_core.tasks.listing import project_json
    from pulse_core.tasks.task import Project

    where, place = open_home(home), repository and str(Path(repository).expanduser().absolute())
    said = {"repository": place, "base": base, "columns": column, "members": member, "review": review}
    data: dict[str, Any] = asdict(current_tasks(where).projects.get(name, Project()))
    data |= {key: one for key, one in said.items() if one not in (None, [])}
    is_one = place is None or any((Path(place) / sign).exists() for sign in (".git", "HEAD"))
    note = "" if is_one else f"{place} is no git repository yet; its tasks can't be claimed until it is"
    return CommandResult(
        "", lambda: project_json(name, current_tasks(where)), note, append(where, "project-set", name, data)
    )


@projects.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the projects."""
    from pulse_core.tasks.listing import project_json

    known = current_tasks(open_home(home))
    found = [project_json(name, known) for name in known.projects]
    nothing = "There is no project; upulse project add makes one."
    put_or_draw(found, as_json, "capabilities.tasks.views.project_table", nothing)


@projects.command()
def show(name: Name, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show a project and its open tasks."""
    from pulse_core.tasks.listing import project_json

    where = open_home(home)
    known = current_tasks(where)
    found = project_json(name, known)
    if as_json:
        return put_json(found)
    from upulse_cli.capabilities.tasks.views import project_page

    return draw(project_page(found, known.of_project(name), where.clock.now()))


@projects.change()
def remove(name: Name, home: HomeDir = None) -> CommandResult:
    """Remove a project without open tasks."""
    from pulse_core.app.append import append

    return CommandResult(answer=append(open_home(home), "project-removed", name))


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
        draw(boards(known, project, None if sys.stdout.isatty() else where.clock.now()))
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            for state in states:
                live.update(boards(state, project), refresh=True)
