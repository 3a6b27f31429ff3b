"""`upulse project`: what tasks belong to."""

from pathlib import Path
from typing import Annotated, Any

import typer

from upulse_cli.capabilities.tasks.current import current_tasks, project_names
from upulse_cli.options import AsJson, HomeDir, completed_by, group, open_home
from upulse_cli.output import console, put_json, say, say_when

projects = group("Projects, which tasks belong to: a repository, columns, and who may do their tasks.")

Name = Annotated[str, typer.Argument(help="Its name.", autocompletion=completed_by(project_names))]


@projects.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name: letters, digits, '.', '_' and '-'.")],
    repository: Annotated[
        str | None, typer.Option("--repository", metavar="DIR", help="Its git repository.")
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="Branch on which its tasks' begin; main.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", help="A column; repeat in their order.")
    ] = None,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="An agent that may do its tasks.")
    ] = None,
    review: Annotated[
        bool | None, typer.Option("--review/--no-review", help="A person closes what was done.")
    ] = None,
    home: HomeDir = None,
) -> None:
    """Add a project, or change what is said of one."""
    from dataclasses import asdict

    from pulse_core.app.append import append
    from pulse_core.tasks.task import Project

    where, place = open_home(home), repository and str(Path(repository).expanduser().absolute())
    said = {"repository": place, "base": base, "columns": column, "members": member, "review": review}
    data: dict[str, Any] = asdict(current_tasks(where).projects.get(name, Project()))
    data |= {key: one for key, one in said.items() if one not in (None, [])}
    say_when(append(where, "project-set", name, data))


@projects.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the projects."""
    from pulse_core.tasks.listing import project_json

    known = current_tasks(open_home(home))
    found = [project_json(name, one, known) for name, one in known.projects.items()]
    if as_json:
        return put_json(found)
    if not found:
        return say("There is no project; upulse project add makes one.")
    from upulse_cli.capabilities.tasks.views import project_table

    return console().print(project_table(found))


@projects.command()
def show(name: Name, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show a project and its open tasks."""
    from pulse_core.tasks.admission import known_project
    from pulse_core.tasks.listing import project_json

    where = open_home(home)
    known = current_tasks(where)
    found = project_json(name, known_project(name, known), known)
    if as_json:
        return put_json(found)
    from upulse_cli.capabilities.tasks.views import project_page

    return console().print(project_page(found, known.by_project.get(name, ()), where.clock.now()))


@projects.command()
def remove(name: Name, home: HomeDir = None) -> None:
    """Remove a project without open tasks."""
    from pulse_core.app.append import append

    say_when(append(open_home(home), "project-removed", name))
