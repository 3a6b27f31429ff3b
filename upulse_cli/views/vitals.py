"""Every vital in a row: its newest value, its bounds in that time, and its course."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from pulse_core.app.series import Series
from pulse_core.model.text import one_line
from upulse_cli.views.plot import sparkline


def table(found: Sequence[Series]) -> Table:
    """One row a number."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("vital", "last", "lowest", "highest", "course"):
        drawn.add_column(title, justify="left" if title in ("vital", "course") else "right")
    for one in found:
        values = [point.value for point in one.points]
        low, high = min(point.low for point in one.points), max(point.high for point in one.points)
        bounds = (f"{value:.4g}" for value in (values[-1], low, high))
        drawn.add_row(one_line(one.name), *bounds, sparkline(values))
    return drawn
