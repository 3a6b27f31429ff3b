"""Costs as tables: watchers, helping processes, rules."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.durations import duration_text
from pulse_core.model.text import count
from upulse_cli.time_args import local
from upulse_cli.views.table import PlainTable

Told = Mapping[str, Any]


def tables(told: Told) -> RenderableType:
    """One table for each kind of thing that there is."""
    parts: list[RenderableType] = []
    if told["watchers"]:
        words = "watchers: their newest looks, and the share of a core that they took in the daemon"
        parts += [Text(words, style="bold"), watcher_table(told["watchers"])]
    if told["helpers"]:
        words = "processes that help the daemon, since their start"
        parts += [Text(words, style="bold"), helper_table(told["helpers"])]
    if told["rules"]:
        words = f"rules: {count(told['ticks']['calls'], 'tick')} since {local(told['since'], named=True)}"
        parts += [Text(words, style="bold"), rule_table(told["rules"])]
    return Group(*parts)


def watcher_table(watchers: Sequence[Told]) -> Table:
    """One line a watcher."""
    drawn = cost_table("watcher", "every", "looks", "failed", "p50", "p99", "CPU", "over")
    for one in watchers:
        every, over = duration_text(one["interval_s"] * 1e6), duration_text(one["over_s"] * 1e6)
        p50, p99 = (
            None if one[name] is None else duration_text(one[name] * 1000) for name in ("p50_ms", "p99_ms")
        )
        cpu = None if one["cpu"] is None else f"{one['cpu']:.3%}"
        drawn.line(one["name"], every, one["looks"], failures(one["failures"]), p50, p99, cpu, over)
    return drawn


def helper_table(helpers: Sequence[Told]) -> Table:
    """One line a process."""
    drawn = cost_table("module", "pid", "CPU", "memory")
    for one in helpers:
        drawn.line(one["module"], one["pid"], f"{one['cpu']:.3%}", f"{one['rss'] / 2**20:.1f} MiB")
    return drawn


def rule_table(rules: Sequence[Told]) -> Table:
    """One line a rule, the dearest first."""
    drawn = cost_table("rule", "calls", "failed", "p50", "p99", "of all")
    for one in rules:
        p50, p99, share = duration_text(one["p50_us"]), duration_text(one["p99_us"]), f"{one['share']:.1%}"
        drawn.line(one["rule"], one["calls"], failures(one["errors"]), p50, p99, share)
    return drawn


def failures(number: int) -> Text:
    """A number that is good only if it is 0."""
    return Text(str(number), style="red" if number else "")


def cost_table(name: str, *numbers: str) -> PlainTable:
    """A table without lines yet."""
    return PlainTable(name, *numbers, right=numbers, ruled=True)
