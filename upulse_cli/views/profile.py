"""Costs as tables: watchers, helping processes, rules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.text import count, one_line
from upulse_cli.time_args import local, took

Told = Mapping[str, Any]


def tables(told: Told) -> RenderableType:
    """One table for each kind of thing that there is."""
    return Group(*_tables(told))


def _tables(told: Told) -> Iterator[RenderableType]:
    if told["watchers"]:
        yield heading("watchers: their newest looks, and the share of a core that they took in the daemon")
        yield watcher_table(told["watchers"])
    if told["helpers"]:
        yield heading("processes that help the daemon, since their start")
        yield helper_table(told["helpers"])
    if told["rules"]:
        yield heading(f"rules: {count(told['ticks']['calls'], 'tick')} since {local(told['since'])}")
        yield rule_table(told["rules"])


def watcher_table(watchers: Sequence[Told]) -> Table:
    """One line a watcher."""
    drawn = drawn_with("watcher", "every", "looks", "failed", "p50", "p99", "CPU", "over")
    for one in watchers:
        drawn.add_row(
            one_line(one["name"]),
            took(one["interval_s"] * 1e6),
            str(one["looks"]),
            Text(str(one["failures"]), style="red" if one["failures"] else ""),
            milliseconds(one["p50_ms"]),
            milliseconds(one["p99_ms"]),
            "-" if one["cpu"] is None else f"{one['cpu']:.3%}",
            took(one["over_s"] * 1e6),
        )
    return drawn


def helper_table(helpers: Sequence[Told]) -> Table:
    """One line a process."""
    drawn = drawn_with("module", "pid", "CPU", "memory")
    for one in helpers:
        size = f"{one['rss'] / 2**20:.1f} MiB"
        drawn.add_row(one_line(one["module"]), str(one["pid"]), f"{one['cpu']:.3%}", size)
    return drawn


def rule_table(rules: Sequence[Told]) -> Table:
    """One line a rule, the dearest first."""
    drawn = drawn_with("rule", "calls", "failed", "p50", "p99", "of all")
    for one in rules:
        drawn.add_row(
            one_line(one["rule"]),
            str(one["calls"]),
            Text(str(one["errors"]), style="red" if one["errors"] else ""),
            took(one["p50_us"]),
            took(one["p99_us"]),
            f"{one['share']:.1%}",
        )
    return drawn


def heading(words: str) -> Text:
    """What the next table is of."""
    return Text(words, style="bold")


def drawn_with(*heads: str) -> Table:
    """A table without lines yet; only its first column holds words."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, head in enumerate(heads):
        drawn.add_column(head, justify="right" if place else "left", no_wrap=True)
    return drawn


def milliseconds(value: float | None) -> str:
    """A duration, or a dash where nothing was measured."""
    return "-" if value is None else took(value * 1000)
