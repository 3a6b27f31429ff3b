"""`upulse verify`: is the log what was written?"""

import sys
from typing import TYPE_CHECKING

import typer

from pulse_core.model.text import one_line
from upulse_cli.options import AsJson, HomeDir
from upulse_cli.speech import put, put_json

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home
    from pulse_adapters.sqlite.verify import VerifyResult


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Check the whole log.

    Names the first row that was altered or is missing, and exits 1 if there is one.
    """
    from upulse_cli.wiring.home import found_home

    verdict = watched(found_home(home))
    if as_json:
        put_json({"rows": verdict.rows, "took_ms": verdict.took_ms, "fault": verdict.fault})
    elif verdict.fault:
        put(one_line(f"damaged: {verdict.fault}; {verdict.rows} rows before it are good"))
    else:
        put(f"good: {verdict.rows} rows, read in {verdict.took_ms} ms")
    raise typer.Exit(1 if verdict.fault else 0)


def watched(home: "Home") -> "VerifyResult":
    """The verdict, with a sign of life on a terminal: a million rows take seconds."""
    from pulse_adapters.sqlite.backup.known_rows import last_checkpoint_row
    from pulse_adapters.sqlite.verify import verify as read_all

    expect = last_checkpoint_row(home)
    if not sys.stderr.isatty():
        return read_all(home.events, home.objects, expect=expect)
    from rich.console import Console

    with Console(stderr=True).status("reading the log …"):
        return read_all(home.events, home.objects, expect=expect)
