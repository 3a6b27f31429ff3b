"""`upulse instances`: the homes on this machine, and their daemons."""

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.output import console, put_json, say


def instances(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List the homes on this machine, and their daemons.

    Those are ~/.upulse, ~/.upulse-NAME for each instance, the homes of installed units, and the one that is named.
    """
    from upulse_cli.wiring.instances import known

    found = known(home)
    if as_json:
        return put_json(found)
    if not found:
        return say("There is no home; make one with: upulse init")
    from upulse_cli.time_args import ago
    from upulse_cli.views.status import coloured_state
    from upulse_cli.views.table import PlainTable

    heads = ("instance", "state", "pid", "for", "home", "unit")
    drawn = PlainTable(*heads, right=("pid", "for"), fold=heads)
    for one in found:
        drawn.line(one["name"], coloured_state(one), one["pid"], ago(one["since"]), one["home"], one["unit"])
    return console().print(drawn)
