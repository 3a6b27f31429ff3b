"""Homes and their daemons as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from pulse_core.model.text import one_line
from upulse_cli.time_args import ago
from upulse_cli.views.status import COLOURS


def table(instances: Sequence[Mapping[str, Any]]) -> Table:
    """One line a home; what is no instance's has a dash for a name."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("instance", "state", "pid", "for", "home", "unit"):
        drawn.add_column(name, justify="right" if name in ("pid", "for") else "left", overflow="fold")
    for one in instances:
        drawn.add_row(
            one["name"] or "-",
            Text(one["state"], style=COLOURS.get(one["state"], "")),
            str(one["pid"] or "-"),
            ago(one["since"]),
            one_line(one["home"]),
            one_line(one["unit"] or "-"),
        )
    return drawn
