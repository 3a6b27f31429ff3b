"""`upulse agents`: which there are, what they do, and how they have done; `upulse run`: what they print."""

import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.capabilities.tasks.commands import Task, tasks
from upulse_cli.capabilities.tasks.current import current_tasks, events_about, task_change
from upulse_cli.options import AsJson, HomeDir, Why, completed_by, group, open_home
from upulse_cli.output import CommandResult, put, put_json, put_line, put_or_draw, say

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.projections.state import Snapshot

agents = group("Agents that do tasks: which there are, what they do just now, and how they have done.")
runs = group("Runs of agents: what they print.")

LOOK_S, PIECE = 0.2, 1 << 20


def agent_names(home: "HomeContext", _begun: str) -> Iterator[str]:
    """The names of the agents."""
    from pulse_core.agents.settings import AGENTS

    return (agent.name for agent in AGENTS.of(home.settings().settings))


Agent = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name.", autocompletion=completed_by(agent_names))
]


def seen(home: str | None) -> "Snapshot":
    """What rules would see now."""
    from pulse_core.app.state import current_snapshot

    return current_snapshot(open_home(home)).snapshot


@agents.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the agents: what each can do, and what it is at."""
    from pulse_core.agents.listing import agents_json

    found = agents_json(seen(home))
    nothing = "There is no agent; add one as [[agent]] to config.toml."
    put_or_draw(found, as_json, "capabilities.agents.views.agent_table", nothing)


@agents.command()
def ps(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the programs of agents that run now."""
    from pulse_core.agents.listing import runs_json

    put_or_draw(runs_json(seen(home)), as_json, "capabilities.agents.views.run_table", "No agent is at work.")


@agents.command()
def stats(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show how each agent has done so far."""
    from pulse_core.agents.listing import stats_json
    from pulse_core.agents.settings import AGENTS
    from pulse_core.tasks.stats import STATS

    curr = seen(home)
    names = dict.fromkeys([*(agent.name for agent in AGENTS.of(curr.settings)), *curr.of(STATS).agents])
    found = [stats_json(name, curr) for name in names]
    put_or_draw(found, as_json, "capabilities.agents.views.stats_table", "No agent has done anything yet.")


@agents.change()
def worktrees(
    remove: Annotated[bool, typer.Option("--remove", help="Those without work, of ended tasks.")] = False,
    home: HomeDir = None,
) -> CommandResult:
    """List the folders of tasks, and why some of them stay."""
    from pulse_core.agents.projection import RUNS
    from pulse_core.app.effects import carry_out
    from pulse_core.app.state import current_value

    where = open_home(home)
    if remove:
        for id_ in current_value(where, RUNS).kept.keys() - current_tasks(where).tasks.keys():
            carry_out(where, "remove-workspace", id_, {"task": id_})
    runs = current_value(where, RUNS)
    found = [{"task": task, "path": path, "kept": None} for task, path in runs.worktrees.items()]
    found += [{"task": task, "path": one.path, "kept": one.why} for task, one in runs.kept.items()]
    lines = (f"{one['task']}  {one['path']}: {one['kept'] or 'its task has not ended'}" for one in found)
    return CommandResult("\n".join(lines), lambda: found, "" if found else "No task has a folder.")


@tasks.change("pull-request")
def pull_request(
    task: Task,
    title: Annotated[str, typer.Option("--title", help="Else the task's.")] = "",
    body: Annotated[str, typer.Option("--body", help="Else what came of the task.")] = "",
    draft: Annotated[bool, typer.Option("--draft", help="It is not ready for review.")] = False,
    home: HomeDir = None,
) -> CommandResult:
    """Open a pull request for a task's branch.

    Prints where it is; one that is there is printed again. The daemon opens it, by the GitHub CLI (`gh`); the branch must
    be pushed.
    """
    from pulse_core.app.effects import carry_out
    from pulse_core.tasks.listing import find_task

    where = open_home(home)
    id_ = find_task(current_tasks(where), task).id
    params = {"task": id_, "title": title, "body": body, "draft": draft}
    return task_change(where, id_, str(carry_out(where, "open-pull-request", id_, params)["url"]))


@agents.command()
def doctor(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Look whether agents' programs are there and logged in.

    Looks, too, whether they can be started as their users. Exits 1 if one is not. Who was set aside and is well goes on.
    """
    from pulse_core.agents.projection import RUNS
    from pulse_core.agents.settings import AGENTS, workspaces_in
    from pulse_core.app.state import current_value
    from upulse_cli.capabilities.agents.wiring import presence_of

    where = open_home(home)
    settings = where.settings().settings
    above = workspaces_in(where.layout.path, settings)
    found = [presence_of(agent, above) for agent in AGENTS.of(settings)]
    aside = current_value(where, RUNS).aside
    for one in found:
        if one.is_well and one.agent in aside:
            agent_change(home, "agent-resumed", one.agent, "upulse agents doctor finds that it is well")
            say(f"{one.agent} was set aside, and goes on.")
    if as_json:
        put_json([one._asdict() for one in found])
    for one in () if as_json else found:
        put(f"{'ok' if one.is_well else 'fail':<5}{one.agent}: {one.words}")
    raise typer.Exit(0 if all(one.is_well for one in found) else 1)


@agents.change()
def pause(agent: Agent, why: Why = "", home: HomeDir = None) -> CommandResult:
    """Have an agent begin nothing more.

    What it is at it goes on with.
    """
    return agent_change(home, "agent-paused", agent, why)


@agents.change()
def resume(agent: Agent, why: Why = "", home: HomeDir = None) -> CommandResult:
    """Have an agent go on that was paused or set aside."""
    return agent_change(home, "agent-resumed", agent, why)


def agent_change(home: str | None, kind: str, name: str, why: str) -> CommandResult:
    """Record what happens to an agent."""
    from pulse_core.agents.listing import agents_json
    from pulse_core.app.append import append

    answer = append(open_home(home), kind, name, {"why": why})
    return CommandResult(
        value=lambda: next(one for one in agents_json(seen(home)) if one["name"] == name), answer=answer
    )


@runs.command()
def logs(
    task: Task,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for a run, until it ends.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Print what the last run of a task has printed.

    With --json a line for each piece, which has the run and the text of that.
    """
    from pulse_core.agents.events import AgentRunEnded, AgentRunPrinted, AgentRunStarted
    from pulse_core.agents.run_files import RunFolder
    from pulse_core.model.errors import PulseError
    from pulse_core.tasks.listing import find_task

    where = open_home(home)
    id_ = find_task(current_tasks(where), task).id
    while not (found := said_of(where, id_, AgentRunStarted.kind)):
        if not follow:
            raise PulseError(f"no agent has been at {id_} yet")
        time.sleep(LOOK_S)
    run, decoder = found[-1], getincrementaldecoder("utf-8")("replace")

    def show(raw: bytes, is_last: bool = False) -> None:
        text = decoder.decode(raw, is_last)
        if as_json and text:
            put_line({"task": id_, "run": run, "text": text})
        elif text:
            put(text, end="")

    try:
        file = RunFolder.of(where.layout.path, run).output.open("rb")
    except FileNotFoundError:
        if not (kept := said_of(where, run, AgentRunPrinted.kind, "text")):
            return say("What it has printed is not kept any more.")
        return show(kept[-1].encode(), is_last=True)
    with file:
        is_over = False
        while not is_over:
            is_over = not follow or run in said_of(where, id_, AgentRunEnded.kind)
            while piece := file.read(PIECE):
                show(piece)
            time.sleep(0 if is_over else LOOK_S)
    return show(b"", is_last=True)


def said_of(home: "HomeContext", subject: str, kind: str, name: str = "run") -> list[str]:
    """What the events of this kind about a task, or a run, say under this name, the newest last."""
    return [str((event["data"] or {}).get(name, "")) for event in events_about(home, subject, kind)]
