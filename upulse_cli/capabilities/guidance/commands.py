"""`upulse guidance`: coding agents at work notice that the plan has changed."""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir, Host, Port, TokenVariable, completed_by, group, open_home
from upulse_cli.output import draw, put, put_json, say, say_when

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

guidance = group("Guidance for coding agents at work: serve it, and say which projects the daemon watches.")

STEP_S = 0.2

Project = Annotated[str, typer.Argument(metavar="PATH", help="The project's folder.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(guidance, name="guidance")


def standing(home: "HomeContext") -> Mapping[str, Any]:
    """How each project stands, by its root."""
    from pulse_core.app.state import current_state
    from pulse_core.guidance.answers import interrupt
    from pulse_core.guidance.projection import GUIDANCE

    projects = current_state(home).of(GUIDANCE).projects
    return {
        root: {"watched": one.is_watched, "events": one.count, **interrupt(one, one.count)}
        for root, one in sorted(projects.items())
        if one.initialized_at
    }


def roots(home: "HomeContext", _begun: str) -> Iterator[str]:
    return iter(standing(home))


Known = Annotated[
    str, typer.Argument(metavar="PATH", help="The project's folder.", autocompletion=completed_by(roots))
]


@guidance.command()
def start(
    project: Annotated[
        str, typer.Option("--project", "-p", metavar="PATH", help="The project's folder.")
    ] = ".",
    host: Host = "127.0.0.1",
    port: Port = 8765,
    token: TokenVariable = None,
    home: HomeDir = None,
) -> None:
    """Serve a project's guidance to agents.

    It runs in the foreground, makes the files in .pulse that are missing, and a home if there is none; it needs no daemon.
    Ends with code 3 if the port is used.
    """
    from upulse_cli.capabilities.guidance.wiring import serve_project

    serve_project(project, host, port, token, home, say)


@guidance.command()
def add(path: Project, home: HomeDir = None) -> None:
    """Have the daemon watch a project's guidance, too.

    Makes the files in .pulse that are missing.
    """
    from pulse_core.app.append import append
    from upulse_cli.capabilities.guidance.wiring import guided, project_root

    where, root = open_home(home), project_root(path)
    with guided(where) as service:
        service.begin(root)
    answer = append(where, "guidance-watched", root)
    put(root)
    say(f"{root}/.pulse is watched; what agents have to do is in docs/guidance.md.")
    say_when(answer)


@guidance.command()
def remove(path: Known, home: HomeDir = None) -> None:
    """Have the daemon watch a project no more.

    Its files stay, and so does what was recorded.
    """
    from pulse_core.app.append import append
    from upulse_cli.capabilities.guidance.wiring import project_root

    where = open_home(home)
    root = path if path in standing(where) else project_root(path)
    answer = append(where, "guidance-unwatched", root)
    say(f"{root}/.pulse is not watched by the daemon any more.")
    say_when(answer)


@guidance.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the projects with guidance."""
    found = standing(open_home(home))
    if as_json:
        return put_json(found, by_name=True)
    if not found:
        return say("No project has guidance; add one with: upulse guidance add PATH")
    from upulse_cli.views.table import PlainTable

    drawn = PlainTable("project", "watched", "events", "pending", right=("events",))
    for root, one in found.items():
        pending = ", ".join(one["pending_replan_files"]) or "-"
        drawn.line(root, "yes" if one["watched"] else "no", one["events"], pending)
    return draw(drawn)


@guidance.command()
def status(path: Known = ".", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Say whether an agent has to replan."""
    from upulse_cli.capabilities.guidance.wiring import guided, project_root

    with guided(open_home(home)) as service:
        found = service.should_interrupt(project_root(path), None)
    if as_json:
        return put_json(found)
    if found["needs_replan"]:
        files = " and ".join(found["pending_replan_files"])
        put(f"An agent has to replan: {files} changed ({found['pending_replan_event_id']}).")
    else:
        put("No change of guidance or constraints is pending.")
    if last := found["last_acknowledged_event_id"]:
        put(f"Acknowledged last: {last}")
    return None


@guidance.command()
def wait(
    path: Known = ".",
    until_ack: Annotated[
        bool, typer.Option("--until-ack", help="Until an agent has acknowledged what is pending.")
    ] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DURATION", help="Give up after this.")
    ] = None,
    home: HomeDir = None,
) -> None:
    """Wait for a change, or for its acknowledgement.

    Exits 1 if it has not come in time.
    """
    from pulse_core.model.errors import PulseError
    from pulse_core.model.moment import US_PER_SECOND
    from upulse_cli.capabilities.guidance.wiring import guided, project_root
    from upulse_cli.time_args import duration_arg

    until = time.monotonic() + duration_arg(timeout, "--timeout") / US_PER_SECOND if timeout else float("inf")
    root = project_root(path)
    with guided(open_home(home)) as service:
        while service.should_interrupt(root, None)["needs_replan"] == until_ack:
            if time.monotonic() >= until:
                what = "it was not acknowledged" if until_ack else "nothing has changed"
                raise PulseError(f"{what} in time")
            time.sleep(STEP_S)
