"""`upulse plugins`: what installed packages add to Pulse."""

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import console, put_json, say

PARTS = ("rules", "projections", "watchers", "executors")


def plugins(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the plugins that are installed, and what they bring.

    A plugin is a package with an entry point in the group pulse.plugins, which names one pulse_core.Plugin. It is
    installed beside Pulse, and the daemon finds it when it starts; its rules run in the rule host.
    """
    from upulse_cli.wiring.engine import plugin_contents

    found = plugin_contents()
    if as_json:
        return put_json(found)
    if not found:
        return say("No plugin is installed; one is a package with an entry point in the group pulse.plugins.")
    from rich.text import Text

    from pulse_core.model.text import one_line
    from upulse_cli.views.table import PlainTable

    heads = ("plugin", "package", "version", "brings")
    drawn = PlainTable(*heads, fold=heads)
    for one in found:
        brings = "; ".join(f"{part}: {', '.join(one[part])}" for part in PARTS if one[part]) or "nothing"
        words = Text(one_line(one["error"]), style="red") if one["error"] else brings
        drawn.line(one["name"], one["package"], one["version"], words)
    return console().print(drawn)
