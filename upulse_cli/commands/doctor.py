"""`upulse doctor`: what is wrong, and what to do about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import put, put_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulse_core.app.doctor import Finding


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what is safe to repair; never the log.")
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
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
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
    from pulse_core.model.text import count
    from upulse_cli.output import console
    from upulse_cli.views.doctor import lines

    for words in done:
        say(f"repaired: {words}")
    console().print(lines(findings), soft_wrap=True)
    bad = {level: sum(finding.level == level for finding in findings) for level in ("fail", "warn")}
    if not any(bad.values()):
        put("all is well")
    else:
        fails, warns = count(bad["fail"], "failure"), count(bad["warn"], "warning")
        put(f"{fails}, {warns}")
