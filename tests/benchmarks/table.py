"""One measured number beside its goal and its raw limit, and the table that all of them make."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

HEADS = ("what", "reach", "measured", "raw limit, same run", "ratio")


class Row(NamedTuple):
    """One line of the table, in words; raw and ratio are empty where nature sets no limit."""

    what: str
    goal: str
    measured: str
    raw: str = ""
    ratio: str = ""


def times(measured: float, raw: float) -> str:
    """How many times the raw limit something takes, as `3.2 x`."""
    return f"{measured / raw:.1f} x" if raw else ""


def share(measured: float, raw: float) -> str:
    """Which part of the raw limit something reaches, as `67 %`."""
    return f"{measured / raw:.0%}" if raw else ""


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Median and 99th percentile in words."""
    return f"p50 {percentile(values, 50):.2f}, p99 {percentile(values, 99):.2f} {unit}"


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table, in columns that read well without a renderer too."""
    lines = [HEADS, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADS))]
    drawn = [
        " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines
    ]
    drawn.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in drawn)
