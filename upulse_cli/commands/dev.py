"""`upulse dev`: the rules of staging, live, as they are edited."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.speech import console, put, put_line

if TYPE_CHECKING:
    from upulse_cli.engine.dev_news import News
    from upulse_cli.engine.trial import Trial


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(dev)


def dev(
    execute: Annotated[
        bool, typer.Option("--execute", help="Have the daemon do what they wish, in your name.")
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
    from upulse_cli.engine import trial
    from upulse_cli.engine.executing import by_hand
    from upulse_cli.wiring.home import found_home

    where = found_home(home)
    acts = by_hand(where) if execute else None
    path = trial.staging_of(where)
    if not just_once and not as_json and sys.stdout.isatty() and sys.stdin.isatty():
        return on_screen(trial.Trial(where, path, lambda news: None, acts))
    from upulse_cli.views.dev import Lines, spelled

    lines = Lines()

    def tell(news: "News") -> None:
        if as_json:
            return put_line(spelled(news))
        for line in lines.of(news):
            put(line)
        return None

    tried = trial.Trial(where, path, tell, acts)
    if just_once:
        import asyncio

        raise typer.Exit(0 if asyncio.run(trial.once(tried)) else 1)
    return trial.run(trial.go_on(tried))


def on_screen(tried: "Trial") -> None:
    """Draw until q or Ctrl-C."""
    from contextlib import suppress

    from rich.live import Live

    from upulse_cli.engine.trial import go_on, run
    from upulse_cli.views.dev_screen import Standing
    from upulse_cli.views.live_screen import keys

    standing = Standing(tried.path)
    with (
        suppress(KeyboardInterrupt),
        keys(),
        Live(console=console(), screen=True, auto_refresh=False) as drawing,
    ):

        def tell(news: "News") -> None:
            standing.take(news)
            drawing.update(standing.drawn(), refresh=True)

        run(go_on(tried._replace(tell=tell)), quits=True)
