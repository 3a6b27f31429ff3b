"""`upulse gc`: take away what is of no use any more."""

from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import put, put_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulse_core.model.json_types import Json


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Take away what is of no use any more.

    Old samples go after being rolled up to minutes, and old ticks, objects that nothing names, old logs and
    archives. A running daemon does this by itself every hour; here it is asked to do it now. No event ever goes.
    """
    from pulse_core.app.gc import ask_daemon
    from pulse_core.app.status import daemon_status
    from upulse_cli.wiring.gc import collect_offline, forecast

    where = open_home(home)
    if dry_run:
        told = forecast(where)
    elif daemon_status(where)["state"] == "stopped":
        told = collect_offline(where)
    else:
        told = ask_daemon(where)
    if as_json:
        put_json(told)
    else:
        put(in_words(told, "would go" if dry_run else "gone"))
    if fault := told.get("fault"):
        from pulse_core.model.errors import PulseError

        raise PulseError(f"not everything could be done: {fault}")


def in_words(told: "Mapping[str, Json]", verb: str) -> str:
    """What went, in one line."""
    from pulse_core.model.text import count, format_size

    counts = {name: told[name] for name in ("samples", "ticks", "minutes", "objects", "files") if told[name]}
    if not counts:
        return f"{verb}: nothing"
    words = ", ".join(count(number, name.removesuffix("s")) for name, number in counts.items())
    return f"{verb}: {words}" + (f" ({format_size(told['bytes'])})" if told["bytes"] else "")
