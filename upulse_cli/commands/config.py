"""`upulse config`: the settings file, checked, shown, found."""

from typing import Annotated

import typer

from pulse_core.model.text import count
from upulse_cli.options import AsJson, HomeDir, group, open_home
from upulse_cli.output import put, put_json, say

app = group("Check, show and find the settings.")


@app.command()
def check(
    file: Annotated[str | None, typer.Argument(help="Another file than the home's config.toml.")] = None,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Say every fault in the settings.

    All at once, each with its line; exits 1 if there is one. Says too where more than one process matches, or one that
    `start` would not produce.
    """
    from pathlib import Path

    from pulse_core.model.errors import SettingsRefused
    from upulse_cli.wiring.home import (
        checked_settings,
        doubts_now,
        home_context,
        meant_home,
        unguarded_now,
    )

    layout = meant_home(home)
    path = Path(file) if file else layout.config
    try:
        settings = checked_settings(path)
    except SettingsRefused as refused:
        if not as_json:
            raise
        put_json({"path": str(path), "faults": refused.faults})
        raise typer.Exit(1) from refused
    doubts = doubts_now(layout, settings)
    if as_json:
        put_json({"path": str(path), "faults": [], "doubts": doubts})
        return
    say(f"{path} is good; it guards {count(len(settings.process), 'process')}.")
    for name, words in doubts.items():
        say(f"{name}: {words}")
    if not file:
        for line in unguarded_now(home_context(layout), settings):
            say(line)


@app.command()
def show(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Print the settings, defaults filled in."""
    from upulse_cli.wiring.home import settings_in, settings_text

    settings = settings_in(open_home(home).layout.config)
    if as_json:
        put_json(settings.model_dump(mode="json", by_alias=True))
    else:
        put(settings_text(settings).rstrip("\n"))


@app.command()
def path(home: HomeDir = None) -> None:
    """Print where the settings file is."""
    from upulse_cli.wiring.home import meant_home

    put(str(meant_home(home).config))
