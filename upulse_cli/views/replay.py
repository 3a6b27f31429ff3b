"""Replays for people."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.app.engine.replay import Replay, ReplayComparison
from pulse_core.model.text import count, one_line
from upulse_cli.views.table import PlainTable

MOST = 50
OUTCOMES = ("passed", "added", "dropped", "bypassed", "error")


def shown(found: ReplayComparison) -> RenderableType:
    """What each rule did, what was wrong, and every difference with its time."""
    new, old = found.new, found.old
    parts: list[RenderableType] = [
        Text(
            f"{count(new.ticks, 'tick')} through {new.revision.commit[:12]}, beside {old.revision.commit[:12]}"
        ),
        rules(new),
        *(Text(one_line(f"{times} x {fault}"), style="red") for fault, times in new.faults.items()),
        Text(f"{count(len(new.wishes), 'wish')}; {len(old.wishes)} of the other"),
    ]
    for one in found.differences[:MOST]:
        sign, style = ("+", "green") if one.only == "new" else ("-", "red")
        words = (
            f"{sign} {one.wish.at[:19].replace('T', ' ')}  {one.wish.key}  {one.wish.rule}  {one.wish.reason}"
        )
        parts.append(Text(one_line(words), style=style))
    if len(found.differences) > MOST:
        parts.append(Text(f"… and {len(found.differences) - MOST} more; --json has all"))
    if not found.differences:
        parts.append(Text("no difference"))
    return Group(*parts)


def rules(replay: Replay) -> Table:
    """How often each rule did what."""
    table = PlainTable("rule", *OUTCOMES, right=OUTCOMES)
    for rule, counts in replay.rules.items():
        table.line(rule, *(counts[name] or "" for name in OUTCOMES))
    return table
