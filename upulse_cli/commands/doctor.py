"""`upulse doctor` and `gc`: what is wrong, and what to do about it; what is of no use any more, and taking it away."""

from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import console, put, put_json, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulse_core.app.doctor import Finding
    from pulse_core.model.json_types import Json


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Take away what is of no use any more.

    Old samples go after being rolled up to minutes, and old ticks, objects that nothing names, old logs and
    archives. A running daemon does this by itself every hour; here it is asked to do it now. No event ever goes.
    """
    from pulse_core.app.gc import ask_daemon
    from pulse_core.app.status import daemon_status
    from upulse_cli.wiring.gc import collect_offline, forecast

    where = open_home(home)
    if dry_run:
        told = forecast(where)
    elif daemon_status(where)["state"] == "stopped":
        told = collect_offline(where)
    else:
        told = ask_daemon(where)
    if as_json:
        put_json(told)
    else:
        put(in_words(told, "Would be removed" if dry_run else "Removed"))
    if fault := told.get("fault"):
        from pulse_core.model.errors import PulseError

        raise PulseError(f"not everything could be done: {fault}")


def in_words(told: "Mapping[str, Json]", verb: str) -> str:
    """What went, in one line."""
    from pulse_core.model.text import count, format_size

    counts = {name: told[name] for name in ("samples", "ticks", "minutes", "objects", "files") if told[name]}
    if not counts:
        return f"{verb}: nothing"
    words = ", ".join(count(number, name.removesuffix("s")) for name, number in counts.items())
    return f"{verb}: {words}" + (f" ({format_size(told['bytes'])})" if told["bytes"] else "")


COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what is safe to repair; never a row of the log.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read the whole log, however long it is.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Look at all that Pulse stands on; say what is wrong.

    Versions, the kernel, disk and clock, the home and its stores, settings, the daemon and its unit. Exits 1 if
    something fails. What is wrong with the log only a backup can mend: upulse restore.
    """
    from pulse_core.app.doctor import FAIL, examine
    from pulse_core.app.doctor import repair as repair_all
    from upulse_cli.wiring.doctor import checks_of

    where = open_home(home)
    findings = examine(checks_of(where, deep))
    done: Sequence[str] = ()
    if repair and (done := repair_all(findings)):
        findings = examine(checks_of(where, deep))
    if as_json:
        told = [
            {name: text for name, text in finding._asdict().items() if name != "repair"}
            for finding in findings
        ]
        put_json({"findings": told, "repaired": list(done)})
    else:
        show(findings, done)
    raise typer.Exit(1 if any(finding.level == FAIL for finding in findings) else 0)


def show(findings: "Sequence[Finding]", done: "Sequence[str]") -> None:
    """For a person: a line each, what to do below it, and the result at the end."""
    from rich.text import Text

    from pulse_core.app.doctor import OK
    from pulse_core.model.text import count, one_line

    for words in done:
        say(f"repaired: {words}")
    drawn = Text()
    for finding in findings:
        drawn.append(f"{finding.level:<5}", COLOURS[finding.level])
        drawn.append(f"{finding.name:<12} ", "" if finding.level == OK else "bold")
        drawn.append(one_line(finding.words) + "\n")
        if finding.remedy:
            drawn.append(f"{'':<18}→ {one_line(finding.remedy)}\n", "dim")
    drawn.rstrip()
    console().print(drawn, soft_wrap=True)
    bad = {level: sum(finding.level == level for finding in findings) for level in ("fail", "warn")}
    counts = f"{count(bad['fail'], 'failure')}, {count(bad['warn'], 'warning')}"
    put(counts if any(bad.values()) else "all is well")
