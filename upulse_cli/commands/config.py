"""`upulse config`: the settings file, checked, shown, found."""

from typing import TYPE_CHECKING, Annotated

import typer

from pulse_core.model.text import count
from upulse_cli.options import AsJson, HomeDir, group
from upulse_cli.speech import put, put_json, say

if TYPE_CHECKING:
    from pathlib import Path

    from pulse_core.settings import Settings

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

    from pulse_adapters.config.home import Home
    from pulse_core.model.errors import SettingsRefused

    path = Path(file) if file else Home.resolve(home).config
    try:
        settings = checked(path)
    except SettingsRefused as refused:
        if not as_json:
            raise
        put_json({"path": str(path), "faults": refused.faults})
        raise typer.Exit(1) from refused
    if as_json:
        put_json({"path": str(path), "faults": []})
    else:
        say(f"{path} is good; it guards {count(len(settings.process), 'process')}.")


def checked(path: "Path") -> "Settings":
    """The settings, once Apprise too has understood the addresses; raises SettingsRefused."""
    from pulse_adapters.config.file import load
    from pulse_adapters.config.toml_lines import locate, nearest
    from pulse_core.model.errors import SettingsRefused

    settings = load(path)
    if not settings.notify.urls:
        return settings
    from pulse_adapters.notify.services import strange

    lines = locate(path.read_text(encoding="utf-8-sig"))
    faults = [
        f"{path}:{nearest(lines, ('notify', 'urls', place))}: notify.urls[{place + 1}]: {words}"
        for place, words in strange(settings.notify).items()
    ]
    if faults:
        raise SettingsRefused(faults)
    return settings


@app.command()
def show(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Print the settings, defaults filled in."""
    from pulse_adapters.config.file import load
    from pulse_adapters.config.toml_writer import show as written
    from upulse_cli.wiring.home import found_home

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
