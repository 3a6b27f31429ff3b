"""Numbers drawn with characters: a line of blocks, and a plot with axes."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from pulse_core.model.durations import duration_text
from pulse_core.model.moment import TICK_US, iso
from pulse_core.model.text import format_size
from upulse_cli.time_args import local

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 10
WIDTH, LABEL = 80, 14
"""How many columns a plot has at most, and what the values at its left take."""
LARGEST = 1e300
"""What is drawn of a number at most: sums and differences of larger ones may be none."""
SIZES = ("free", "memory_available", "memory_total", "self_rss", "swap_total")
SHARES = ("cpu", "cpu_max", "memory", "swap", "used", "inodes", "some", "full", "self_cpu")
"""What a machine's numbers of bytes, and its fractions, are called last."""
USAGES = ("memory", "cpu")
"""What a tree's numbers of bytes, and of cores, are called last; a core is 100%."""


def vital(name: str, value: float) -> str:
    """A sensed value in the unit that suits it: `84.7 GiB`, `32.2%`, `4.1 ms`, `30,860`."""
    sense, *_, last = name.split(".")
    if sense == "system-resource" and last in SIZES:
        return format_size(value)
    if sense == "system-resource" and last in SHARES:
        return f"{value:.1%}"
    if sense == "process-usage" and last in USAGES:
        return format_size(value) if last == "memory" else _percent(value)
    if sense == "agent-runs" and last in ("memory", "output"):
        return format_size(value)
    if last.endswith("_bytes"):
        return format_size(value)
    if last.endswith("_us"):
        return duration_text(value)
    if last.endswith("_s"):
        return duration_text(value * 1_000_000)
    if last.endswith("_ms"):
        return duration_text(value * 1000)
    if sense == "process-alive" and last == "started":  # clock ticks, as the kernel tells them
        return f"{duration_text(value * TICK_US)} after boot"
    if sense == "process-alive" and name.endswith(".probe.failing"):
        return local(iso(round(value)))
    if last == "pid":
        return f"{value:.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _percent(share: float) -> str:
    """A share in percent, with digits enough to tell small ones apart."""
    return f"{share:.0%}" if share >= 0.1 else f"{share * 100:.2g}%"


def sparkline(values: Sequence[float], width: int = 30) -> str:
    """The values as blocks from the lowest to the highest, at most `width` of them (the mean of neighbours)."""
    if not values:
        return ""
    shown = thinned(values, width)
    low, high = min(shown), max(shown)
    if high == low:
        return BLOCKS[4] * len(shown)
    return "".join(BLOCKS[1 + round((value - low) / (high - low) * 7)] for value in shown)


def plot(
    values: Sequence[float],
    width: int = WIDTH,
    height: int = HEIGHT,
    form: Callable[[float], str] = "{:.4g}".format,
) -> list[str]:
    """Lines of a plot, the top one first, each with the value of its row at the left."""
    shown = thinned(values, width)
    low, high = min(shown), max(shown)
    span = (high - low) or abs(high) or 1.0
    bottom = low if high > low else low - span / 2
    eighths = [round((value - bottom) / span * height * 8) for value in shown]
    labels = [bottom + span * row / height for row in range(height)]
    return [
        f"{form(labels[row]):>{LABEL - 2}} ┤"
        + "".join(BLOCKS[max(0, min(8, level - row * 8))] for level in eighths)
        for row in reversed(range(height))
    ]


def thinned(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values: the means of as many equal stretches."""
    values = [min(max(value, -LARGEST), LARGEST) for value in values]
    if len(values) <= width:
        return values
    edges = [round(place * len(values) / width) for place in range(width + 1)]
    parts = [values[start:end] for start, end in pairwise(edges)]
    return [sum(part) / len(part) for part in parts]
