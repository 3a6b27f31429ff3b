"""Agents and their runs as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from pulse_core.model.durations import duration_text
from pulse_core.model.text import format_size
from upulse_cli.time_args import local, zone
from upulse_cli.views.table import PlainTable


def agent_table(agents: Sequence[Mapping[str, Any]]) -> Table:
    """One line an agent."""
    drawn = PlainTable("name", "kind", "labels", "projects", "tasks", "note")
    for one in agents:
        may_do = ", ".join(one["labels"]) or "any", ", ".join(one["projects"]) or "all"
        tasks = f"{len(one['tasks'])}/{one['concurrency']}"
        note = one["unavailable"] or ", ".join(one["tasks"])
        drawn.line(one["name"], one["kind"], *may_do, tasks, note)
    return drawn


def run_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """One line a run."""
    drawn = PlainTable(
        "task", "agent", "pid", f"since ({zone()})", "printed", "memory", "cpu", "note",
        right=("pid", "printed", "memory", "cpu"), whole=("task",),
    )  # fmt: skip
    for one in runs:
        held = one["paused"] and f"held: {one['paused']}"
        note = "has ended" if one["ended"] else one["stop"] or held or one["unlimited"] or one["workspace"]
        used = format_size(one["output"]), format_size(one["memory"]), duration_text(one["cpu_s"] * 1e6)
        drawn.line(one["task"], one["agent"], one["pid"], local(one["since"]), *used, note)
    return drawn


def stats_table(agents: Sequence[Mapping[str, Any]]) -> Table:
    """One line an agent."""
    drawn = PlainTable(
        "name", "assigned", "closed", "failed", "given up", "in a row", "average", "labels",
        right=("assigned", "closed", "failed", "given up", "in a row", "average"),
    )  # fmt: skip
    for one in agents:
        average = "-" if one["average_s"] is None else duration_text(one["average_s"] * 1e6)
        of = one["labels"].items()
        labels = ", ".join(f"{name} {its['closed']}/{its['closed'] + its['failed']}" for name, its in of)
        counts = (one[name] for name in ("assigned", "closed", "failed", "given_up", "consecutive_failures"))
        drawn.line(one["name"], *counts, average, labels)
    return drawn
