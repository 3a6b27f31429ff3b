"""Plugins for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.text import one_line

PARTS = ("rules", "projections", "watchers", "executors")


def table(plugins: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One row each: where it comes from, and what it brings or why it can't."""
    drawn = Table(box=None, pad_edge=False)
    for name in ("plugin", "package", "version", "brings"):
        drawn.add_column(name, overflow="fold")
    for one in plugins:
        words, style = (one["error"], "red") if one["error"] else (brings(one), "")
        cells = (Text(one_line(one[name])) for name in ("name", "package", "version"))
        drawn.add_row(*cells, Text(one_line(words), style=style))
    return drawn


def brings(one: Mapping[str, Any]) -> str:
    """What it brings, by part."""
    return "; ".join(f"{part}: {', '.join(one[part])}" for part in PARTS if one[part]) or "nothing"
