"""Tasks and projects as tables, pages and boards."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from pulse_core.model.moment import Moment
from pulse_core.model.text import clean, count, one_line
from pulse_core.tasks.listing import TIMES, tasks_in_columns
from pulse_core.tasks.projection import PendingTasks
from pulse_core.tasks.task import TaskState
from upulse_cli.time_args import local
from upulse_cli.views.table import PlainTable, facts

SHOWN, FEW_WORDS = 10, 200
"""Tasks of a column that a board shows; characters of a note. An agent's error may have thousands, `task show` has all."""


def task_table(tasks: Sequence[TaskState], now: Moment) -> Table:
    """One line a task."""
    heads = ("id", "project", "column", "status", "prio", "title", "note")
    drawn = PlainTable(*heads, right=("prio",), whole=("id",))
    for one in tasks:
        drawn.line(one.id, one.project, one.column, one.standing, one.priority, one.title, note(one, now))
    return drawn


def note(task: TaskState, now: Moment) -> str:
    """What else there is to know of it, in a few words."""
    left, pause = task.lease_left(now), task.retry_left(now)
    words = [task.agent] if task.agent else []
    if left is not None:
        words.append(f"for another {duration_text(left)}")
    if pause:
        words.append(f"again in {duration_text(pause)}")
    if task.waits_for:
        words.append(f"waits for {', '.join(task.waits_for)}")
    if task.stuck_on:
        words.append(f"{', '.join(task.stuck_on)} failed or can't go on")
    if task.error:
        words.append(task.error)
    said = "; ".join(words)
    return said if len(said) <= FEW_WORDS else f"{said[:FEW_WORDS]}…"


def task_page(said: Mapping[str, Any]) -> RenderableType:
    """All of one task; the words of others stand by themselves."""
    names = ("id", "project", "status", "column", "priority", "labels", "agent", "attempts", "token", "parent",
             "parts", "blockers", "waits_for", "stuck_on", "due", "created", "by", "held", "error",
             "pull_request")  # fmt: skip
    parts: list[RenderableType] = [Text(one_line(said["title"]), style="bold"), facts(said, names, TIMES)]
    for name in ("prompt", "result"):
        if said[name]:
            parts += [Text(), Text(name, style="dim"), Text(clean(said[name]))]
    if isinstance(commits := said["data"].get("commits"), list) and commits:
        parts += [Text(), Text("commits", style="dim"), *(Text(one_line(str(one))) for one in commits)]
    return Group(*parts, Text(), *_events(said["events"]))


def _events(events: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    for event in events:
        data, names = event["data"] or {}, ("agent", "column", "path", "why", "error", "said", "result")
        is_named = str(data.get("why")).startswith(f"{data.get('agent')} ")  # and need not be named twice
        words = " ".join(str(data[name]) for name in names[is_named:] if data.get(name))
        words = f"it goes on: {words}" if data.get("over") else words
        line = f"{local(event['at'])}  {event['kind']:<19} {event['actor']}  {one_line(words)}"
        yield Text(line.rstrip(), overflow="ellipsis", no_wrap=True)


def project_table(projects: Sequence[Mapping[str, Any]]) -> Table:
    """One line a project."""
    drawn = PlainTable("name", "repository", "base", "open", "members", right=("open",))
    for one in projects:
        members = ", ".join(one["members"]) or "all"
        drawn.line(one["name"], one["repository"], one["base"], one["open"], members)
    return drawn


def project_page(said: Mapping[str, Any], tasks: Sequence[TaskState], now: Moment) -> RenderableType:
    """All of one project."""
    title = Text(f"{said['name']}: {count(len(tasks), 'task')} open", style="bold")
    names = ("repository", "base", "columns", "members", "review")
    return Group(title, facts(said, names), *((Text(), task_table(tasks, now)) if tasks else ()))


def boards(known: PendingTasks, name: str, now: Moment | None = None) -> RenderableType:
    """The tasks of one project, or of all, in their columns. now: each on a line instead, as a pipe wants it."""
    if not (names := [name] if name else list(known.projects)):
        return Text("There is no project; upulse project add makes one.")
    if now:
        columns = (some for one in names for some in tasks_in_columns(known, one).values())
        return task_table([task for some in columns for task in some], now)
    return Group(*(board(known, one) for one in names))


def board(known: PendingTasks, name: str) -> Table:
    """A project's tasks in its columns."""
    drawn, cells = Table(title=Text(name), title_justify="left"), []
    for column, some in tasks_in_columns(known, name).items():
        drawn.add_column(Text(f"{column} ({len(some)})"), ratio=1, overflow="fold")
        more = [f"and {len(some) - SHOWN} more"] if len(some) > SHOWN else []
        who = {one.id: f" ({one.agent})" if one.agent else "" for one in some[:SHOWN]}
        cards = (f"{one.id[5:]} {one.standing}{who[one.id]}\n{one_line(one.title)}" for one in some[:SHOWN])
        cells.append(Text("\n\n".join([*cards, *more])))
    drawn.add_row(*cells)
    return drawn
