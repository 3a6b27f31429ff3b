"""`upulse new` and `dev`: something of your own in staging, and the rules there, live, as they are edited."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import console, put, put_line, say

if TYPE_CHECKING:
    from pulse_core.app.engine.dev_reports import DevReport
    from pulse_core.app.engine.dev_session import DevTarget


def dev(
    execute: Annotated[
        bool, typer.Option("--execute", help="Have the daemon do what they request, in your name.")
    ] = False,
    just_once: Annotated[
        bool, typer.Option("--once", help="Fold one snapshot and leave; exits 1 if anything is wrong.")
    ] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Run the rules of staging live, as you edit them.

    Each save is loaded at once, and folded with each tick of the daemon, or with this machine's vital signs while
    none runs. Staging's own watchers are asked, and its rules see what they bring. Shown are samples, effects by rule,
    notes, errors with their line, times, and what would make a replay differ. Effects are not executed, unless asked:
    then staging's own executors do theirs, unrecorded, and the daemon does the rest. Ends with Ctrl-C.
    """
    from pulse_core.app.engine import dev_session
    from upulse_cli.wiring.dev import dev_target

    target = dev_target(open_home(home), does_execute=execute)
    if not just_once and not as_json and sys.stdout.isatty() and sys.stdin.isatty():
        return on_screen(target)
    from upulse_cli.run_loop import run_until_ended
    from upulse_cli.views.dev import Lines, spelled

    lines = Lines()

    def tell(report: "DevReport") -> None:
        if as_json:
            return put_line(spelled(report))
        for line in lines.of(report):
            put(line)
        return None

    target = replace(target, tell=tell)
    if just_once:
        import asyncio

        raise typer.Exit(0 if asyncio.run(dev_session.try_once(target)) else 1)
    return run_until_ended(dev_session.follow_staging(target))


def on_screen(target: "DevTarget") -> None:
    """Draw until q or Ctrl-C."""
    from contextlib import suppress

    from rich.live import Live

    from pulse_core.app.engine.dev_session import follow_staging
    from upulse_cli.run_loop import run_until_ended
    from upulse_cli.views.dev import Standing
    from upulse_cli.views.watch import keys

    standing = Standing(target.path)
    with (
        suppress(KeyboardInterrupt),
        keys(),
        Live(console=console(), screen=True, auto_refresh=False) as drawing,
    ):

        def tell(report: "DevReport") -> None:
            standing.take(report)
            drawing.update(standing.drawn(), refresh=True)

        run_until_ended(follow_staging(replace(target, tell=tell)), quits=True)


def new(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="rule, projection, watcher or executor.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, as quiet-nights or quiet_nights.")],
    home: HomeDir = None,
) -> None:
    """Begin something of your own in staging.

    A rule, projection, watcher or executor, with its test. It is listed in engine.py, and in force once it is promoted.
    """
    from upulse_cli.wiring.engine import begin_in_staging

    for path in begin_in_staging(open_home(home).layout.path, what, name):
        put(str(path))
    say("edit it, see what it would do with: upulse dev, and bring it into force with: upulse promote")
