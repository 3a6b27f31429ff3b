"""`upulse status --watch`: vital signs, guarded processes, recent effects, last ticks; fits into 80 x 24."""

import select
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pulse_core.app.context import HomeContext
from pulse_core.app.status import overview
from pulse_core.model.durations import duration_text
from pulse_core.model.text import one_line
from upulse_cli.output import console
from upulse_cli.run_loop import q_pressed
from upulse_cli.time_args import local
from upulse_cli.views.effects import duration, reason, state
from upulse_cli.views.plot import sparkline
from upulse_cli.views.status import banners, coloured_state, daemon_line, effects_line
from upulse_cli.views.table import PlainTable, cell_text

EVERY = 0.5
"""Seconds between two pictures."""

FIXED = 11
"""Lines that are always there: headings, vital signs, counts, and those that are empty."""

COURSE = 10
"""Characters that a course may take."""

WIDEST = 30
"""Characters that a column but the last one may claim for itself."""

Value = Mapping[str, Any]


def screen(value: Value, height: int = 24) -> RenderableType:
    """Everything, each list cut so that the whole has at most `height` lines."""
    warnings = list(banners(value))
    room = max(6, height - FIXED - len(warnings))
    processes = sorted(value["processes"], key=lambda one: bool(one["state"] == "up"))[: max(2, room // 2)]
    left = room - len(processes)
    effects, ticks = value["recent"][: max(2, left // 2)], value["ticks"][: max(2, left - left // 2)]
    return Group(
        *warnings,
        daemon_line(value["daemon"]),
        *vital_lines(value["vitals"].get("system-resource", {}), value.get("courses", {})),
        Text(),
        process_lines(processes, len(value["processes"])),
        Text(),
        effects_line(value["effects"]),
        effect_lines(effects),
        Text(),
        tick_lines(ticks, value["tick"]),
    )


def vital_lines(data: Value, courses: Mapping[str, Sequence[float]]) -> Iterator[Text]:
    """The machine in two lines, the daemon itself in one."""
    if not data:
        yield Text("vitals    no sample yet", style="dim")
        return
    yield _line(
        "machine   ",
        course("cpu", data.get("cpu"), courses),
        course("memory", data.get("memory"), courses),
        share("swap", data.get("swap")),
        *disks(data.get("disks", {}), courses),
    )
    waits = (share(name, lines.get("some")) for name, lines in data.get("psi", {}).items())
    load = Text(f"load {data.get('load1', '-')} {data.get('load5', '-')} {data.get('load15', '-')}")
    yield _line("pressure  ", *waits, Text.assemble(load, " ", went("load1", courses)))
    own = f"cpu {data.get('self_cpu', 0):.2%}  memory {data.get('self_rss', 0) / 2**20:.0f} MiB  "
    yield Text(f"pulse     {own}late {data.get('loop_late_ms', 0):.1f} ms", no_wrap=True)


def course(name: str, value: float | None, courses: Mapping[str, Sequence[float]]) -> Text:
    """A fraction in percent, and how it went in the last minutes."""
    return Text.assemble(share(name, value), " ", went(name, courses))


def went(name: str, courses: Mapping[str, Sequence[float]]) -> Text:
    """How something went in the last minutes."""
    return Text(sparkline(courses.get(name, ()), COURSE), style="dim")


def disks(data: Mapping[str, Value], courses: Mapping[str, Sequence[float]]) -> Iterator[Text]:
    """How full each file system is; for the course of it there is only room if there is but one."""
    for path, disk in data.items():
        shown = share(path, disk.get("used"))
        yield Text.assemble(shown, " ", went(path, courses)) if len(data) == 1 else shown


def share(name: str, value: float | None) -> Text:
    """A fraction in percent, coloured by how full that is."""
    if value is None:
        return Text(f"{one_line(name)} -", style="dim")
    style = "red" if value >= 0.9 else "yellow" if value >= 0.75 else ""
    return Text(f"{one_line(name)} {value:.0%}", style=style)


def process_lines(processes: Sequence[Value], count: int) -> Table:
    """Guarded processes, one line each; those that are up last, since they may be cut."""
    more = f"process ({len(processes)} of {count})" if len(processes) < count else "process"
    rows = [
        (one["name"], coloured_state(one), one["pid"] or None, one["restarts"], one.get("why", ""))
        for one in processes
    ]
    return _table((more, "state", "pid", "restarts", "why"), rows)


def effect_lines(effects: Sequence[Value]) -> Table:
    """The newest effects first, with what came of them."""
    rows = [(local(one["at"]), state(one), duration(one), one["key"], reason(one)) for one in effects]
    return _table(("time", "state", "took", "effect", "reason"), rows)


def tick_lines(ticks: Sequence[Value], beat: Value) -> Table:
    """The last ticks, newest first."""
    p99 = "" if beat["p99_ms"] is None else f" (p99 {beat['p99_ms']:.1f} ms)"
    rows = [
        (one["tick"], duration_text(one["took_us"]), one["woken_by"], ", ".join(one["effects"]))
        for one in ticks
    ]
    return _table(("tick", f"took{p99}", "woken by", "effects"), rows)


def _table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Columns that are cut rather than wrapped, the last one first, so that lines can be counted."""
    table, texts = PlainTable(*names), [list(map(cell_text, row)) for row in rows]
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for place, column in enumerate(table.columns[:-1]):
        longest = max((len(row[place]) for row in texts), default=0)
        column.min_width = min(WIDEST, max(longest, len(names[place])))
    for row in texts:
        table.add_row(*row)
    return table


def _line(name: str, *parts: Text) -> Text:
    text = Text.assemble(name, *(piece for part in parts for piece in (part, "  ")))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def show(home: HomeContext, live: bool) -> None:
    """Draw the screen until q or Ctrl-C; once, if there is no terminal to draw on."""
    if not live:
        return console().print(screen(overview(home)))
    try:
        with keys(), Live(console=console(), screen=True, auto_refresh=False) as drawing:
            while True:
                drawing.update(screen(overview(home), drawing.console.height), refresh=True)
                if select.select([sys.stdin], [], [], EVERY)[0] and q_pressed():
                    return None
    except KeyboardInterrupt:
        return None


@contextmanager
def keys() -> Iterator[None]:
    """Keys are read one by one and not shown meanwhile; Ctrl-C still interrupts."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
