"""`upulse plugins`: what installed packages add to Pulse."""

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import console, put_json, say


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plugins)


def plugins(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the plugins that are installed, and what they bring.

    A plugin is a package with an entry point in the group pulse.plugins, which names one pulse_core.Plugin. It is
    installed beside Pulse, and the daemon finds it when it starts; its rules run in the rule host.
    """
    from upulse_cli.wiring.authoring import plugin_contents

    found = plugin_contents()
    if as_json:
        return put_json(found)
    if not found:
        return say("No plugin is installed; one is a package with an entry point in the group pulse.plugins.")
    from upulse_cli.views.plugins import table

    return console().print(table(found))
