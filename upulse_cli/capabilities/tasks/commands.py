"""`upulse task`: make tasks, see them, and say what becomes of them."""

from typing import Annotated, Any

import typer

from upulse_cli.capabilities.tasks.current import (
    change,
    current_tasks,
    events_about,
    project_names,
    task_change,
    task_ids,
)
from upulse_cli.options import AsJson, HomeDir, Why, completed_by, group, open_home, text_arg
from upulse_cli.output import CommandResult, draw, put_json, put_or_draw, say

tasks = group("Tasks for agents and people: add and list them, claim one, and say what became of it.")

_TASK = "Its id, or enough of its beginning or end."
Task = Annotated[str, typer.Argument(metavar="TASK", help=_TASK, autocompletion=completed_by(task_ids))]
Token = Annotated[int | None, typer.Option("--token", help="Token of the claim, as `task claim` printed it.")]
TokenOfClaim = Annotated[int, typer.Option("--token", help="Token of the claim.")]
OfProject = Annotated[
    str, typer.Option("--project", help="Only of this project.", autocompletion=completed_by(project_names))
]
Agent = Annotated[str, typer.Option("--agent", metavar="NAME", help="Who does it; else the one assigned.")]
Lease = Annotated[str, typer.Option("--lease", metavar="DURATION", help="How long without a heartbeat.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="What it needs of an agent; repeatable.")]
After = Annotated[
    list[str] | None, typer.Option("--after", metavar="TASK", help="To close before; repeatable.")
]
Parts = Annotated[bool, typer.Option("--parts", help="Close its parts and theirs, too, as they are.")]


@tasks.change()
def add(
    project: Annotated[str, typer.Argument(help="Its project.", autocompletion=completed_by(project_names))],
    title: Annotated[str, typer.Argument(help="What is to be done, on one line.")],
    prompt: Annotated[str, typer.Option("--prompt", help="All that an agent is told; - reads it.")] = "",
    priority: Annotated[int, typer.Option("--priority", help="From -100 to 100; higher is first.")] = 0,
    column: Annotated[str, typer.Option("--column", help="Where it lies.")] = "Ready",
    label: Labels = None,
    part_of: Annotated[str | None, typer.Option("--part-of", metavar="TASK", help="Its parent.")] = None,
    after: After = None,
    due: Annotated[str | None, typer.Option("--due", metavar="TIME", help="As 2h or 2026-01-31.")] = None,
    home: HomeDir = None,
) -> CommandResult:
    """Make a task and print its id."""
    from pulse_core.app.append import append, new_short_id
    from pulse_core.tasks.events import LONGEST_PROMPT
    from pulse_core.tasks.listing import find_task
    from upulse_cli.time_args import coming_arg

    where = open_home(home)
    data: dict[str, Any] = {"project": project, "title": title, "priority": priority, "column": column}
    data["prompt"] = text_arg(prompt, LONGEST_PROMPT, "--prompt")
    if label:
        data["labels"] = label
    if part_of or after:
        known = current_tasks(where)
        if part_of:
            data["parent"] = find_task(known, part_of).id
        data["blockers"] = [find_task(known, one).id for one in after or ()]
    if due:
        data["due"] = coming_arg(due, "--due")
    id_ = new_short_id("task_")
    return task_change(where, id_, id_, append(where, "task-created", id_, data))


@tasks.command("list")
def list_(
    project: OfProject = "",
    status: Annotated[str, typer.Option("--status", help="Only those that stand so, as pending.")] = "",
    ready: Annotated[
        str, typer.Option("--ready", metavar="AGENT", help="Only what this agent may claim now.")
    ] = "",
    ended: Annotated[bool, typer.Option("--ended", help="Those that have ended, the newest, too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Lines of the table; 0: all.")] = 100,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """List the open tasks, the first to be done first."""
    from pulse_core.tasks.fitness import ready_tasks
    from pulse_core.tasks.listing import task_json
    from pulse_core.tasks.task import ENDED, Status

    if status and status not in set(Status):
        words = f"no status {status!r}; there are {', '.join(Status)}"
        raise typer.BadParameter(words, param_hint="--status")
    where = open_home(home)
    known, now = current_tasks(where), where.clock.now()
    some = ready_tasks(known, ready, where.settings().settings, now) if ready else list(known.tasks.values())
    some += known.ended.values() if not ready and (ended or status in ENDED) else ()
    some = [one for one in some if project in ("", one.project) and status in ("", str(one.standing))]
    some.sort(key=lambda one: (one.status == "closed", -one.priority, one.created.at))
    if as_json:
        return put_json([task_json(one, now) for one in some])
    if not some:
        return say("No task is open that fits; those that have ended: upulse task list --ended")
    from upulse_cli.capabilities.tasks.views import task_table

    shown = some[: limit or None]
    draw(task_table(shown, now))
    if left := len(some) - len(shown):
        say(f"And {left:,} more; --limit 0 shows all, --project and --status some.")
    return None


@tasks.command()
def show(task: Task, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show all of a task, with what happened to it."""
    from pulse_core.tasks.listing import find_task, task_json

    where = open_home(home)
    known, now = current_tasks(where), where.clock.now()
    one = find_task(known, task)
    events = [event for event in events_about(where, one.id) if event["kind"] != "task-heartbeat"]
    paused = [event for event in events if event["kind"] in ("agent-run-paused", "agent-run-ended")]
    last = (paused[-1]["data"] or {"why": "(redacted)"}) if paused else {}
    is_held = paused and paused[-1]["kind"] == "agent-run-paused" and not last.get("over")
    said = {**task_json(one, now), "held": last.get("why") if is_held else None, "events": events}
    put_or_draw(said, as_json, "capabilities.tasks.views.task_page")


@tasks.change("start")
@tasks.change()
def claim(task: Task, agent: Agent = "", lease: Lease = "15m", home: HomeDir = None) -> CommandResult:
    """Claim a task for an agent and print the token.

    Of all who try, one gets it. It holds until its lease ends; `upulse task heartbeat` begins that anew.
    """
    from pulse_core.tasks.listing import find_task
    from upulse_cli.time_args import duration_arg

    if not (who := agent or find_task(current_tasks(open_home(home)), task).agent):
        raise typer.BadParameter("it is assigned to nobody; say who does it", param_hint="--agent")
    made = change(home, task, "task-executing", {"agent": who, "lease_us": duration_arg(lease, "--lease")})
    assert made.answer
    note = f"{who} holds {made.answer.event['subject']} already." if made.answer.existing else ""
    return made._replace(text=str(made.answer.event["seq"]), note=note)


@tasks.change()
def heartbeat(task: Task, token: TokenOfClaim, home: HomeDir = None) -> CommandResult:
    """Begin the lease of a claim anew."""
    return change(home, task, "task-heartbeat", {"token": token})


@tasks.change()
def assign(
    task: Task,
    agent: Annotated[str, typer.Argument(help="Who is to do it.")],
    why: Why = "",
    home: HomeDir = None,
) -> CommandResult:
    """Give a task to an agent, and to nobody else."""
    return change(home, task, "task-assigned", {"agent": agent, "why": why})


@tasks.change()
def ack(
    task: Task,
    token: Token = None,
    result: Annotated[str, typer.Option("--result", help="What came of it; - reads it.")] = "",
    home: HomeDir = None,
) -> CommandResult:
    """Say that the work is done."""
    from pulse_core.tasks.events import LONGEST_RESULT

    words = text_arg(result, LONGEST_RESULT, "--result")
    return change(home, task, "task-acked", {"token": token, "result": words})


@tasks.change()
def close(task: Task, why: Why = "", parts: Parts = False, home: HomeDir = None) -> CommandResult:
    """Accept what was done, or say that it needs not be done."""
    from pulse_core.tasks.listing import find_task

    known, data = current_tasks(open_home(home)), {"why": why}
    below = known.below(find_task(known, task).id) if parts else ()
    made = change(home, task, "task-closed", data)
    for one in below:
        if one.token:
            change(home, one.id, "task-given-up", data)
        change(home, one.id, "task-closed", data)
    return made


@tasks.change("give-up")
def give_up(task: Task, token: Token = None, why: Why = "", home: HomeDir = None) -> CommandResult:
    """Say that nobody goes on with a task."""
    return change(home, task, "task-given-up", {"token": token, "why": why})


@tasks.change()
def release(task: Task, token: Token = None, why: Why = "", home: HomeDir = None) -> CommandResult:
    """Give a task back, for somebody else to do."""
    return change(home, task, "task-released", {"token": token, "why": why})


@tasks.change()
def block(
    task: Task,
    why: Annotated[str, typer.Argument(help="What a person has to do about it.")],
    token: Token = None,
    home: HomeDir = None,
) -> CommandResult:
    """Say that a task needs a person before it goes on."""
    return change(home, task, "task-blocked", {"token": token, "why": why})


@tasks.change()
def retry(task: Task, why: Why = "", home: HomeDir = None) -> CommandResult:
    """Have a task done after all, or again.

    One that failed, is blocked or was given up; or whose result is not accepted.
    """
    return change(home, task, "task-retried", {"why": why})


@tasks.change()
def move(
    task: Task,
    column: Annotated[str, typer.Argument(help="Where it is to lie.")],
    why: Why = "",
    home: HomeDir = None,
) -> CommandResult:
    """Move a task to another column."""
    return change(home, task, "task-moved", {"column": column, "why": why})


@tasks.change()
def deps(
    task: Task,
    after: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK]...", help="Tasks to close before.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="It waits for no task any more.")] = False,
    home: HomeDir = None,
) -> CommandResult:
    """Say or show which tasks must be closed before one."""
    from pulse_core.tasks.listing import find_task

    known = current_tasks(open_home(home))
    if after or none:
        blockers = [find_task(known, one).id for one in after or ()]
        return change(home, task, "task-blockers-set", {"blockers": blockers})
    one = find_task(known, task)
    said = [f"{id_}{' (open)' if id_ in one.waits_for else ''}" for id_ in one.blockers]
    return CommandResult(
        "\n".join(said), lambda: [{"id": id_, "open": id_ in one.waits_for} for id_ in one.blockers]
    )
