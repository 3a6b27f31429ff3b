"""Effects as a table, and one of them in full."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from pulse_core.model.names import ONLY_LOGGED
from pulse_core.model.text import clean, one_line
from upulse_cli.time_args import local, zone
from upulse_cli.views.events import line, short
from upulse_cli.views.table import PlainTable

COLOURS = {
    "pending": "yellow",
    "retrying": "yellow",
    "executing": "cyan",
    "acked": "green",
    "failed": "red",
    "unknown": "bold red",
    "cancelled": "dim",
}


def table(effects: Sequence[Mapping[str, Any]]) -> Table:
    """One line an effect."""
    drawn = PlainTable("id", f"time ({zone()})", "state", "took", "key", "reason", whole=("id", "key"))
    for one in effects:
        drawn.line(short(one["id"]), local(one["at"]), state(one), duration(one), one["key"], reason(one))
    return drawn


def state(effect: Mapping[str, Any]) -> Text:
    """The state in its colour; of a notice that reached nobody, that it did not."""
    if ((effect.get("outcome") or {}).get("result") or {}).get("only"):
        return Text(ONLY_LOGGED, style="yellow")
    return Text(effect["state"], style=COLOURS.get(effect["state"], ""))


def reason(effect: Mapping[str, Any]) -> str:
    """Why it is wished or who wished it, and when it is tried again; or why nobody can say any more."""
    if effect.get("damaged"):
        return f"(damaged: {effect['damaged']})"
    words = str(effect["reason"] or f"by {effect['actor']}")
    return f"{words}; next try at {local(again)}" if (again := effect.get("next_try")) else words


def duration(effect: Mapping[str, Any]) -> str:
    """From the wish to its outcome."""
    return "" if effect["took_ms"] is None else duration_text(effect["took_ms"] * 1000)


def details(effect: Mapping[str, Any]) -> RenderableType:
    """Everything about one effect, then its events."""
    drawn = Table(box=None, pad_edge=False, show_header=False)
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    drawn.add_row("state", state(effect))
    if held := effect.get("held_back"):
        drawn.add_row("waiting", one_line(held))
    for name in ("id", "action", "key", "reason", "damaged", "rule", "tick", "actor", "cause"):
        if effect.get(name) not in ("", None):
            drawn.add_row(name, clean(effect[name]) if name == "reason" else one_line(effect[name]))
    if effect["action"] is not None:
        drawn.add_row("params", one_line(json.dumps(effect["params"], ensure_ascii=False)))
    drawn.add_row("attempts", str(effect["attempts"]))
    if again := effect.get("next_try"):
        drawn.add_row("next try", local(again, date=True, named=True))
    drawn.add_row("took", duration(effect) or "-")
    return Group(drawn, Text(), *(Text(one_line(line(event))) for event in effect["events"]))
