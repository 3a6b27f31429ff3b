"""How everything stands, for people: the daemon, the processes, the effects, the ticks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.model.home_status import SHOWN_PIDS, daemon_word
from pulse_core.model.text import count, format_size, listed, one_line
from upulse_cli.time_args import ago, local
from upulse_cli.views.table import PlainTable

COLOURS = {
    "running": "bold green",
    "stopped": "dim",
    "not-answering": "bold red",
    "up": "green",
    "stopping": "yellow",
    "restarting": "cyan",
    "starting": "cyan",
    "waiting": "yellow",
    "backing-off": "yellow",
    "flapping": "bold red",
    "down": "bold red",
    "due": "red",
    "silenced": "yellow",
}
KNOWN = {"died": "last sign of life", "not-answering": "started", "did not start": "at", "gave up": "at"}
"""What a daemon did at the time that is given with these states."""
Standing = Mapping[str, Any]


def overview(standing: Standing) -> RenderableType:
    """Everything, warnings first."""
    parts: list[RenderableType] = [*banners(standing), daemon_line(standing["daemon"])]
    if processes := standing["processes"]:
        parts += [Text(), process_table(processes), Text()]
    elif standing.get("settings_faults"):
        parts.append(Text("what is guarded is not known, since the settings can't be read"))
    else:
        parts.append(Text("no process is guarded"))
    for gone in standing.get("unguarded", ()):
        pids = ", ".join(map(str, gone["pids"]))
        words = f"{gone['name']} is not in the settings any more; still running, unguarded: {pids}"
        parts.append(Text(one_line(words), style="yellow"))
    if engine := standing.get("engine"):
        parts.append(engine_line(engine))
    parts.append(effects_line(standing["effects"]))
    parts += notice_lines(standing.get("notices", {}))
    parts += [Text(one_line(line)) for lines in standing.get("capabilities", {}).values() for line in lines]
    return Group(*parts, tick_line(standing["tick"]))


def banners(standing: Standing) -> Iterator[Text]:
    """What must not be overlooked: paused, damaged, less done, conditions, settings that don't load."""
    if paused := standing["paused"]:
        why = f": {paused['why']}" if paused["why"] else ""
        since = f"since {local(paused['since'])} by {paused['by']}{why}"
        yield Text(one_line(f" PAUSED {since}; go on with: upulse resume "), style="black on yellow")
    if safe := standing.get("safe_mode"):
        without = f"without {', '.join(safe['left_out'])}, after {count(safe['crashes'], 'crash')}"
        words = (
            f" SAFE MODE since {local(safe['since'])} {without}; leave it: upulse daemon restart --normal "
        )
        yield Text(one_line(words), style="black on yellow")
    if damage := standing["log"]["damage"]:
        yield Text(one_line(f" DAMAGED LOG {damage} "), style="white on red")
    if unwritten := standing["log"].get("unwritten"):
        words = f" THE LOG CAN'T BE WRITTEN; held in memory: {count(unwritten, 'event')} "
        if left_out := standing["log"].get("left_out"):
            words += f"(dropped: {left_out:,}) "
        yield Text(words, style="white on red")
    elif refusing := standing["log"].get("refusing"):
        yield Text(one_line(f" REQUESTS ARE REFUSED {refusing} "), style="white on red")
    for lost in filter(None, (standing.get("samples_lost"), standing.get("outputs_lost"))):
        yield Text(one_line(f" {lost} "), style="white on red")
    known = "last known: " if standing["daemon"]["state"] in ("stopped", "not-answering") else ""
    for condition in standing.get("conditions", ()):
        state = f" ({condition['state']})" if condition["state"] else ""
        since = f"{state} since {local(condition['since'])}"
        words = f" {condition['name']}{since}: {known}{condition['evidence']}{held_words(condition)} "
        yield Text(one_line(words), style="black on yellow")
    for held in standing.get("held_back", ()):
        words = held.replace(" held back:", ":", 1)
        yield Text(one_line(f" HELD BACK {words} "), style="black on yellow")
    for rule, fault in standing.get("raising", {}).items():
        yield Text(one_line(f" THE RULE {rule} RAISES {fault} "), style="black on yellow")
    for capability, fault in standing.get("set_aside", {}).items():
        yield Text(one_line(f" SET ASIDE {capability}: {fault} "), style="white on red")
    if shed := standing.get("shed"):
        words = f" REDUCED OPERATION (level {shed['level']}): {shed['evidence']} "
        yield Text(one_line(words), style="black on yellow")
    for fault in standing.get("settings_refused", ()):
        yield Text(one_line(f"new settings are refused, the old ones stay in force: {fault}"), style="red")
    told = standing["daemon"].get("failed", {"why": ""})[
        "why"
    ]  # in the line of the daemon, which gave up for it
    for fault in (one for one in standing.get("settings_faults", ()) if one not in told):
        yield Text(one_line(f"settings: {fault}"), style="red")


def held_words(condition: Mapping[str, Any]) -> str:
    """What holds back the answer to a condition, behind other words; empty if nothing does."""
    held = condition.get("held")
    return f" (held back since {held_since(held)} by {held['by']})" if held else ""


def held_since(held: Mapping[str, Any]) -> str:
    """Since when something is held back, as far as the daemon knows."""
    return local(held["since"]) + (" or earlier" if held.get("or_earlier") else "")


def held_for(held: Mapping[str, Any]) -> str:
    """The same, and how long that is."""
    return f"{held_since(held)} ({'at least ' if held.get('or_earlier') else ''}{ago(held['since'])})"


def daemon_line(daemon: Mapping[str, Any]) -> Text:
    """State, pid, since when."""
    state, word = daemon["state"], daemon_word(daemon)
    failed, died = daemon.get("failed"), bool(daemon.get("died"))
    colour = "bold red" if failed or died else COLOURS.get(state, "")
    text = Text.assemble("daemon    ", (word, colour))
    if daemon["pid"]:
        text.append(f"  pid {daemon['pid']}")
    if since := failed["at"] if failed else daemon["since"]:
        text.append(f"  {since_words(since, word)}")
    if failed:
        text.append(one_line(f"  {failed['why']}"))
        if daemon["since"] and not failed["started"]:
            before = (
                since_words(daemon["since"], "died")
                if died
                else f"stopped {since_words(daemon['since'], '')}"
            )
            text.append(f"; the one before it: {before}")
    elif original := daemon.get("copy_of"):
        words = f"this is a copy of {original['home'] or 'a home'}, whose daemon runs as process {original['pid']}"
        text.append(one_line(f"  {words}"))
    elif died:
        text.append("  it was killed, or the machine went down; see upulse daemon logs")
    if state == "stopped":
        text.append("  last known state", style="dim")
    return text


def since_words(since: str, state: str) -> str:
    """Since when it stands so; of a daemon that says no more, when it did what is known of it."""
    when = f"{local(since, named=True)} ({ago(since)}"
    return f"{KNOWN[state]} {when} ago)" if state in KNOWN else f"since {when})"


def process_table(processes: Sequence[Mapping[str, Any]]) -> Table:
    """One line a process, with why it stands so, and what its tree takes where that is known of any."""
    known = any(one.get("usage") for one in processes)
    takes = ("memory", "CPU") if known else ()
    heads = ("process", "state", "pid", "for", *takes, "restarts", "why")
    table = PlainTable(*heads, right=heads[2:-1])
    for one in processes:
        since = ago(one.get("since")) if one["state"] != "unknown" else ""
        pid, why = one["pid"] or None, one.get("why", "")
        if held := one.get("held"):
            why += f"; held back since {held_since(held)}"
        if left := one.get("leftovers"):
            why += f"; of earlier lives {listed(left, SHOWN_PIDS)}"
        taken = usage_cells(one.get("usage") or {}) if known else ()
        table.line(one["name"], coloured_state(one), pid, since, *taken, one["restarts"], why)
    return table


def usage_cells(usage: Mapping[str, Any]) -> tuple[str, str]:
    """Memory, and CPU in percent of one core; empty where it is not known."""
    memory = format_size(usage["memory"]) if "memory" in usage else ""
    return memory, f"{usage['cpu']:.0%}" if "cpu" in usage else ""


def home_table(homes: Sequence[Mapping[str, Any]]) -> Table:
    """One line a home, with its daemon."""
    heads = ("instance", "state", "pid", "for", "home", "unit")
    table = PlainTable(*heads, right=("pid", "for"))
    for one in homes:
        table.line(one["name"], coloured_state(one), one["pid"], ago(one["since"]), one["home"], one["unit"])
    return table


def coloured_state(one: Mapping[str, Any]) -> Text:
    """The state of a daemon or a process in its colour."""
    return Text(one["state"], style=COLOURS.get(one["state"], ""))


def engine_line(engine: Mapping[str, Any]) -> Text:
    """Which of the user's rules run, and what is wrong with them."""
    if disabled := engine.get("disabled"):
        by = f"{disabled['by']}{disabled['why'] and ': '}{disabled['why']}"
        words = f"engine    disabled by {by}; run it again: upulse engine enable"
        return Text(one_line(words), style="yellow")
    if engine.get("left_out"):
        return Text("engine    left out by safe mode", style="yellow")
    if why := engine.get("set_aside"):
        return Text(one_line(f"engine    SET ASIDE: {why}"), style="white on red")
    if why := engine.get("gone"):
        return Text(one_line(f"engine    DEGRADED: {why}"), style="white on red")
    if engine.get("starting"):
        return Text("engine    its host is starting", style="yellow")
    if not engine["runs"]:
        return Text("engine    no host is up; see upulse engine status", style="red")
    text = Text(f"engine    {engine['runs'][:12]}  {count(len(engine['rules']), 'rule')}")
    if engine["degraded"]:
        text.append("  DEGRADED: the promoted commit can't be loaded", style="white on red")
    if engine.get("without_plugins"):
        text.append("  without plugins: it can't be loaded with them; see upulse plugins", style="yellow")
    if engine["quarantined"]:
        text.append(f"  quarantined: {', '.join(engine['quarantined'])}", style="yellow")
    return text.append("  ").append(isolation(engine)) if engine["sandbox"] else text


def isolation(engine: Mapping[str, Any]) -> Text:
    """How far the engine's code is kept from all else."""
    if weak := [part for part, holds in engine["sandbox"].items() if not holds]:
        return Text(f"isolation: partial (no {', '.join(weak)})", style="yellow")
    return Text("isolation: full", style="green")


def effects_line(effects: Mapping[str, int]) -> Text:
    """The counts; what needs a person in red."""
    text = Text("effects   ")
    for name, number in effects.items():
        bad = number and name in ("failed", "unknown")
        text.append(f"{number} {name}  ", style="red" if bad else "" if number else "dim")
    return text


def notice_lines(notices: Mapping[str, Any]) -> Iterator[Text]:
    """Why notices wait, if any does and there is a reason, and which addresses can take none."""
    if notices.get("waiting") and notices.get("held_back"):
        words = f"notices   {notices['waiting']} not delivered: {notices['held_back']}"
        yield Text(one_line(words), style="yellow")
    for fault in notices.get("faults", ()):
        yield Text(one_line(f"notices   {fault}"), style="red")


def tick_line(tick: Mapping[str, Any]) -> Text:
    """How many ticks, and how long they take."""
    if tick["last_ms"] is None:
        return Text(f"ticks     {tick['count']}")
    return Text(f"ticks     {tick['count']}  last {tick['last_ms']:.2f} ms  p99 {tick['p99_ms']:.2f} ms")
