"""One guarded process, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from pulse_core.model.text import count, format_size, one_line
from upulse_cli.time_args import ago, local
from upulse_cli.views.events import said
from upulse_cli.views.status import coloured_state, held_for, held_words
from upulse_cli.views.table import PlainTable


def report(one: Mapping[str, Any]) -> RenderableType:
    """Its state and why, its tree, its newest events and its last lines."""
    return Group(*_parts(one))


def _parts(one: Mapping[str, Any]) -> Iterator[RenderableType]:
    head = Text.assemble((one["name"], "bold"), "  ", coloured_state(one))
    head.append(f"  process {one['pid']}" if one["pid"] else "")
    if one["since"] and one["state"] != "unknown":
        head.append(f"  since {local(one['since'], named=True)} ({ago(one['since'])})")
    yield head.append(f"  {count(one['restarts'], 'restart')}")
    yield _entry("why", one["why"] or "nothing is known of it")
    if held := one.get("held"):
        yield _entry("held", f"back since {held_for(held)} by {held['by']}")
    for about in one.get("conditions", ()):
        yield _entry(about["name"], f"since {local(about['since'])}: {about['evidence']}{held_words(about)}")
    if tree := one["tree"]:
        descriptors = "" if tree["descriptors"] is None else f"  {count(tree['descriptors'], 'descriptor')}"
        sums = f"{format_size(tree['memory'])}  CPU {duration_text(tree['cpu_us'])}  {count(tree['threads'], 'thread')}"
        yield Text(f"takes     {sums}{descriptors}")
        yield _tree(tree["processes"])
    if one["events"]:
        more = ", the newest; all: upulse events --subject " + one["name"] if one.get("events_more") else ""
        yield Text(f"events{more}", style="dim")
    for event in one["events"]:
        who = "" if event["actor"] == "pulse" else f"  by {event['actor']}"
        yield _entry(local(event["at"]), f"{event['kind']}  {said(event)}{who}")
    if one["last_lines"]:
        yield Text(f"last lines; more: upulse process logs {one['name']}", style="dim")
    for line in one["last_lines"]:
        yield Text(one_line(f"  {line}"))


def _entry(head: str, words: str) -> Table:
    """A head and its words, which are indented as a whole where they take several lines."""
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(no_wrap=True, min_width=8)
    drawn.add_column(overflow="fold")
    drawn.add_row(Text(head), Text(one_line(words)))
    return drawn


def _tree(processes: Any) -> PlainTable:
    table = PlainTable("pid", "memory", "CPU", "threads", "descriptors", "program",
                       right=("pid", "memory", "CPU", "threads", "descriptors"))  # fmt: skip
    for one in processes:
        table.line(
            one["pid"], format_size(one["memory"]), duration_text(one["cpu_us"]), one["threads"], one["descriptors"],
            one["name"],
        )  # fmt: skip
    return table
