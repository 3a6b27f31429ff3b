"""`upulse config`: the settings file, checked, shown, found."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, group
from upulse_cli.speech import count, put, put_json, say

app = group("Check, show and find the settings.")


@app.command()
def check(
    file: Annotated[str | None, typer.Argument(help="Another file than the home's config.toml.")] = None,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Say every fault in the settings.

    All at once, each with its line; exits 1 if there is one.
    """
    from pathlib import Path

    from pulse_adapters.config.file import load
    from pulse_adapters.config.home import Home
    from pulse_core.model.errors import SettingsRefused

    path = Path(file) if file else Home.resolve(home).config
    try:
        settings = load(path)
    except SettingsRefused as refused:
        if not as_json:
            raise
        put_json({"path": str(path), "faults": refused.faults})
        raise typer.Exit(1) from refused
    if as_json:
        put_json({"path": str(path), "faults": []})
    else:
        say(f"{path} is good; it guards {count(len(settings.process), 'process')}.")


@app.command()
def show(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Print the settings, defaults filled in."""
    from pulse_adapters.config.file import load
    from pulse_adapters.config.writing import show as written
    from upulse_cli.access import found_home

    settings = load(found_home(home).config)
    if as_json:
        put_json(settings.model_dump(mode="json", by_alias=True))
    else:
        put(written(settings).rstrip("\n"))


@app.command()
def path(home: HomeDir = None) -> None:
    """Print where the settings file is."""
    from pulse_adapters.config.home import Home

    put(str(Home.resolve(home).config))
