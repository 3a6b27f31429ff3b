"""`upulse vitals` and `profile`: what was sensed, as a table or as a plot, and what each part of Pulse costs."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, Since, completed_by, open_home
from upulse_cli.output import console, draw, put, put_json, say

NAMES = (".pid", ".started", ".probe.failing")
"""Ends of numbers that name something, or a time, and have no course."""

LONGEST_COURSE = 30

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulse_core.app.series import Series
    from upulse_cli.views.table import PlainTable


def profile(
    since: Since = "1h",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show what each watcher and each rule costs.

    Of each watcher its newest looks, as the running daemon has measured them; of each rule its part of the
    recorded ticks.
    """
    from pulse_core.app.profile import profile as costs
    from upulse_cli.time_args import moment_arg
    from upulse_cli.wiring.home import child_costs

    told = costs(open_home(home), moment_arg(since, "--since") or 0, child_costs)
    if as_json:
        return put_json(told)
    if told["watchers"] is None:
        say(
            "No daemon answers, so nobody can tell what its watchers cost; what follows is from recorded ticks."
        )
    if not told["rules"]:
        say("No tick was recorded in that time; choose a longer --since, or see: upulse status")
    from upulse_cli.views.profile import tables

    return draw(tables(told))


def vitals(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY",
            help="One number, as `system-resource.memory`: it is plotted. Or how several begin, as `process-usage.web`.",
            autocompletion=completed_by("vitals"),
        ),
    ] = None,
    since: Since = "1h",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Show what was sensed.

    Every number with its course, or those that begin so; or, if one is named, a plot of it. A last value that is not in the
    newest sample of its kind, as the age of a file that is gone, has its time.
    """
    from pulse_core.app.series import all_series, nothing_sensed, series
    from upulse_cli.time_args import moment_arg

    where, now = open_home(home), time.time_ns() // 1000
    after = moment_arg(since, "--since") or 0
    found = series(where, key, after, now) if key else all_series(where, after, now)
    if as_json:
        put_json([to_json(one) for one in found])
    elif not found:
        words = nothing_sensed(where)
        say(f"{words[0].upper()}{words[1:]}")
    elif [one.name for one in found] == [key]:
        draw_plot(found[0])
    else:
        draw(table(found, console().width))


def to_json(one: "Series") -> dict[str, object]:
    """A series as JSON values."""
    from pulse_core.model.moment import iso

    return {"name": one.name, "points": [{"at": iso(point.at), "value": point.value} for point in one.points]}


def table(found: "Sequence[Series]", width: int) -> "PlainTable":
    """One row a number: its newest value, with its time if others of its sense are newer, its bounds, and its course, which
    is as long as so many characters a line allow."""
    from pulse_core.model.moment import iso
    from upulse_cli.time_args import local
    from upulse_cli.views.plot import sparkline, vital
    from upulse_cli.views.table import RULED_GAPS, PlainTable

    newest: dict[str, int] = {}
    for one in found:
        sense, at = one.name.partition(".")[0], one.points[-1].at
        newest[sense] = max(at, newest.get(sense, at))

    heads = ("vital", "last", "lowest", "highest", "course")
    numbers = heads[1:4]
    drawn = PlainTable(*heads, right=numbers, split=numbers, whole=("vital",), ruled=True)
    rows: list[tuple[tuple[str, ...], list[float]]] = []
    for one in found:
        values = [point.value for point in one.points]
        low, high = min(point.low for point in one.points), max(point.high for point in one.points)
        last, *bounds = (vital(one.name, value) for value in (values[-1], low, high))
        # What is not in the newest sample, as the size of a file that is gone, is not how things are now.
        if (at := one.points[-1].at) < newest[one.name.partition(".")[0]]:
            last = f"{last} at {local(iso(at))}"
        rows.append(((one.name, last, *bounds), [] if one.name.endswith(NAMES) else values))
    gap, edges = RULED_GAPS
    taken = sum(max(map(len, cells)) + gap for cells in zip(heads, *(row for row, _ in rows), strict=False))
    longest = min(LONGEST_COURSE, max(len(heads[-1]), width - taken - edges))
    for row, values in rows:
        drawn.line(*row, sparkline(values, longest))
    return drawn


def draw_plot(one: "Series") -> None:
    """A series as a plot, with its first and last time below."""
    from pulse_core.model.moment import iso
    from upulse_cli.time_args import local
    from upulse_cli.views.plot import LABEL, WIDTH, plot, vital

    values, width = [point.value for point in one.points], min(WIDTH, console().width - LABEL)
    low, high = min(point.low for point in one.points), max(point.high for point in one.points)
    last, lowest, highest = (vital(one.name, value) for value in (values[-1], low, high))
    put(f"{one.name}: last {last}, lowest {lowest}, highest {highest}")
    for line in plot(values, width, form=lambda value: vital(one.name, value)):
        put(line)
    begin, end = local(iso(one.points[0].at)), local(iso(one.points[-1].at), named=True)
    put(f"{'':>{LABEL}}{begin}{'':>{max(2, min(len(values), width) - len(begin) - len(end))}}{end}")
