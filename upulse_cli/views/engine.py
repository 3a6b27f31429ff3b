"""The engine for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.text import clean, count, one_line
from upulse_cli.time_args import local, zone
from upulse_cli.views.status import isolation
from upulse_cli.views.table import PlainTable

SHORT = 12
PARTS = ("rules", "projections", "watchers", "executors")


def shown(now: Mapping[str, Any]) -> RenderableType:
    """How the engine stands."""
    table = Table.grid(padding=(0, 2))
    table.add_row("in force", Text(_short(now["commit"]) or "nothing yet"))
    if now["moved"]:
        table.add_row("main", Text(clean(now["moved"]), style="red"))
    if disabled := now["disabled"]:
        words = f"by {disabled['by']} since {local(disabled['since'], named=True)}: {disabled['why'] or 'no reason given'}"
        table.add_row("disabled", Text(one_line(words), style="yellow"))
    table.add_row("runs", _runs(now["running"]))
    if (running := now["running"]) and running["sandbox"]:
        table.add_row("", isolation(running))
        for part, why in running.get("missing", {}).items():
            table.add_row("", Text(one_line(f"no {part}: {why}"), style="dim"))
    if running and (why := running.get("without_plugins")):
        table.add_row("plugins", Text(one_line(f"left out: {why}; see: upulse plugins"), style="yellow"))
    table.add_row("last good", Text(_short(now["good"]) or "none yet"))
    table.add_row("errors", Text(str(now["errors"])))
    if now["breakdowns"]:
        table.add_row("breakdowns", Text(str(now["breakdowns"]), style="red"))
    for rule, why in now["quarantined"].items():
        table.add_row("quarantined", Text(one_line(f"{rule}: {why}"), style="yellow"))
    for commit in now["requests"]:
        table.add_row("asked for", Text(_short(commit) or "the commit before"))
    staging = now["staging"]
    table.add_row("staging", Text(f"{_short(staging['commit'])}, {staging['ahead']} ahead of main"))
    for sentence in staging["advice"]:
        table.add_row("", Text(clean(sentence), style="dim"))
    return table


def _runs(running: Mapping[str, Any] | None) -> Text:
    if running is None:
        return Text("no daemon, or one without an engine", style="dim")
    if running.get("left_out"):
        return Text("left out by safe mode; run it again: upulse daemon restart --normal", style="yellow")
    if running.get("starting"):
        return Text("its host is starting", style="yellow")
    if not running["runs"]:
        return Text("no host is up", style="red")
    words = f"{_short(running['runs'])} with {', '.join(running['rules']) or 'no rules'}"
    return Text(
        f"{words} (degraded)" if running["degraded"] else words, style="red" if running["degraded"] else ""
    )


def history(turns: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Promotes and rollbacks, newest first."""
    heads = ("commit", f"time ({zone()})", "what", "by", "since then", "why")
    table = PlainTable(*heads)
    for one in turns:
        since = Text(one_line(_since(one)), style="red" if one["errors"] else "")
        table.line(_short(one["commit"]), local(one["at"]), one["kind"], one["by"], since, one["why"])
    return table


def _since(one: Mapping[str, Any]) -> str:
    words = count(one["errors"], "error") if one["errors"] else "no error"
    return words + (f", quarantined: {', '.join(one['quarantined'])}" if one["quarantined"] else "")


def plugin_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """What each plugin brings, or what is wrong with it."""
    heads = ("plugin", "package", "version", "brings")
    drawn = PlainTable(*heads)
    for one in found:
        brings = "; ".join(f"{part}: {', '.join(one[part])}" for part in PARTS if one[part]) or "nothing"
        words = Text(one_line(one["error"]), style="red") if one["error"] else brings
        drawn.line(one["name"], one["package"], one["version"], words)
    return drawn


def details(one: Mapping[str, Any]) -> RenderableType:
    """One promote or rollback."""
    lines = [f"  {gate}" for gate in one["gates"]]
    parts = [history([one]), *(Text(clean(line)) for line in lines)]
    if one["changes"]:
        first, *more = clean(one["changes"]).splitlines()
        parts += [Text(f"  behaviour: {first}"), *(Text(f"    {line}") for line in more)]
    return Group(*parts, Text(clean(one["diff"])))


def _short(commit: str | None) -> str:
    return (commit or "")[:SHORT]
