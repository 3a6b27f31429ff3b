"""What became of a shadow, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from pulse_core.model.text import count, one_line
from upulse_cli.time_args import local

MOST = 50


def shown(told: Mapping[str, Any]) -> RenderableType:
    """How far it came, what was wrong, and where it differs from production."""
    return Group(*_head(told), *_faults(told), *_differences(told))


def _head(told: Mapping[str, Any]) -> Iterator[Text]:
    state = "runs" if told["running"] else f"has ended ({told['ended'] or 'it was killed'})"
    dirty = f" and {count(len(told['dirty']), 'changed file')}" if told["dirty"] else ""
    what = told["revision"] if len(told["revision"]) < 40 else told["revision"][:12]
    at = f", at {told['commit'][:12]}{dirty}" if told["commit"] != told["revision"] else ""
    yield Text(one_line(f"the shadow of {what}{at} {state}; rules: {', '.join(told['rules'])}"))
    wishes = told["wishes"]
    yield Text(
        f"{count(told['ticks'], 'tick')} from {local(told['since'])} to {local(told['until'])}: "
        f"its rules wished {count(wishes['shadow'], 'time')}, those in force {count(wishes['main'], 'time')}"
    )


def _faults(told: Mapping[str, Any]) -> Iterator[Text]:
    if told["errors"]:
        yield Text(f"{count(told['errors'], 'error')}", style="red")
    for fault in told["faults"][:MOST]:
        yield Text(one_line(f"  {local(fault['at'])}  {fault['words']}"), style="red")


def _differences(told: Mapping[str, Any]) -> Iterator[Text]:
    found = told["differences"]
    for one in found[:MOST]:
        sign, style = ("+", "green") if one["only"] == "shadow" else ("-", "red")
        words = f"{sign} {local(one['at'])}  {one['key']}  {one['rule']}  {one['reason']}"
        yield Text(one_line(words), style=style)
    if len(found) > MOST:
        yield Text(f"… and {len(found) - MOST} more; --json has all")
    if not found:
        yield Text("no difference")
