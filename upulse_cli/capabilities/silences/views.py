"""Silences as tables: those that hold, and those that come again."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from pulse_core.model.moment import on_local_clock
from pulse_core.silences.rule import DAYS
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
    drawn = PlainTable("held back", f"begins ({zone()})", "for", "now", "why")
    for one in windows:
        now = (
            f"for another {duration_text(one['left_s'] * SECOND)}"
            if one["active"]
            else f"from {local(one['next'])}"
        )
        drawn.line(one["match"], begins(one), one["for"], now, one["why"])
    return drawn


def begins(window: Mapping[str, Any]) -> str:
    """The days and the time of day at which a recurring silence begins, on the local clock as it goes now."""
    then = datetime.fromisoformat(window["next"])
    here = then.astimezone(on_local_clock(datetime.now(UTC)).tzinfo)
    later = here.weekday() - then.weekday()
    days = (DAYS[(DAYS.index(day) + later) % len(DAYS)] for day in window["days"])
    return f"{','.join(days) or 'daily'} {here:%H:%M}"
