"""What other rules would have done, for people: replayed, or as a shadow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.app.engine.replay import Replay, ReplayComparison
from pulse_core.model.text import count, one_line
from upulse_cli.time_args import local, local_span
from upulse_cli.views.table import PlainTable

MOST = 50
"""Differences and faults that are shown."""
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
        Text(f"{count(len(new.wishes), 'effect')} requested, {len(old.wishes)} by the other"),
    ]
    parts += differences(
        [
            (one.only == "new", f"{local(one.wish.at, date=True, named=True)}  {_wish(one.wish._asdict())}")
            for one in found.differences
        ]
    )
    return Group(*parts)


def differences(found: Sequence[tuple[bool, str]]) -> Iterator[Text]:
    """Each difference on a line: whether the rules that are tried alone have it, and its words."""
    for is_new, words in found[:MOST]:
        yield Text(one_line(f"{'+' if is_new else '-'} {words}"), style="green" if is_new else "red")
    if len(found) > MOST:
        yield Text(f"… and {len(found) - MOST} more; --json has all")
    if not found:
        yield Text("no difference")


def _wish(wish: Mapping[str, Any]) -> str:
    return f"{wish['key']}  {wish['rule']}  {wish['reason']}"


def rules(replay: Replay) -> Table:
    """How often each rule did what."""
    table = PlainTable("rule", *OUTCOMES, right=OUTCOMES)
    for rule, counts in replay.rules.items():
        table.line(rule, *(counts[name] or "" for name in OUTCOMES))
    return table


def shadow_shown(told: Mapping[str, Any]) -> RenderableType:
    """How far it came, what was wrong, and where it differs from production."""
    found = [(one["only"] == "shadow", f"{local(one['at'])}  {_wish(one)}") for one in told["differences"]]
    return Group(*_head(told), *_faults(told), *differences(found))


def _head(told: Mapping[str, Any]) -> Iterator[Text]:
    state = "runs" if told["running"] else f"has ended ({told['ended'] or 'it was killed'})"
    dirty = f" and {count(len(told['dirty']), 'changed file')}" if told["dirty"] else ""
    what = told["revision"] if len(told["revision"]) < 40 else told["revision"][:12]
    at = f", at {told['commit'][:12]}{dirty}" if told["commit"] != told["revision"] else ""
    yield Text(one_line(f"the shadow of {what}{at} {state}; rules: {', '.join(told['rules'])}"))
    wishes = told["wishes"]
    yield Text(
        f"{count(told['ticks'], 'tick')} from {local_span(told['since'], told['until'], named=True)}: "
        f"its rules requested {count(wishes['shadow'], 'effect')}, those in force {count(wishes['main'], 'effect')}"
    )


def _faults(told: Mapping[str, Any]) -> Iterator[Text]:
    if told["errors"]:
        yield Text(f"{count(told['errors'], 'error')}", style="red")
    for fault in told["faults"][:MOST]:
        yield Text(one_line(f"  {local(fault['at'])}  {fault['words']}"), style="red")
