"""Silences as tables: those that hold, and those that come again."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from upulse_cli.time_args import local, zone
from upulse_cli.views.events import short
from upulse_cli.views.table import PlainTable

SECOND = 1_000_000


def tables(standing: Mapping[str, Any]) -> RenderableType:
    """Both tables, where there is something in them."""
    parts: list[RenderableType] = []
    if silences := standing["silences"]:
        parts.append(added(silences))
    if windows := standing["recurring"]:
        parts += [*([Text()] if parts else []), recurring(windows)]
    return Group(*parts)


def added(silences: Sequence[Mapping[str, Any]]) -> Table:
    """One line a silence that holds."""
    drawn = PlainTable("id", "held back", f"ends ({zone()})", "left", "by", "why", whole=("id",))
    for one in silences:
        left = duration_text(one["left_s"] * SECOND)
        drawn.line(short(one["id"]), one["match"], local(one["ends"]), left, one["by"], one["why"])
    return drawn


def recurring(windows: Sequence[Mapping[str, Any]]) -> Table:
    """One line a recurring silence."""
    drawn = PlainTable("held back", "begins (UTC)", "for", "now", "why")
    for one in windows:
        days = ",".join(one["days"]) or "daily"
        now = (
            f"for another {duration_text(one['left_s'] * SECOND)}"
            if one["active"]
            else f"from {local(one['next'])}"
        )
        drawn.line(one["match"], f"{days} {one['at']}", one["for"], now, one["why"])
    return drawn
