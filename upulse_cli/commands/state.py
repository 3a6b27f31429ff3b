"""`upulse state`: what the log says, now or at a moment in the past."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer

from upulse_cli.naming import completed_by
from upulse_cli.options import HomeDir
from upulse_cli.speech import put_json


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(state)


def state(
    part: Annotated[
        str | None,
        typer.Argument(
            metavar="PART",
            help="Only this projection, as `processes`; else all.",
            autocompletion=completed_by("projections"),
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="A moment: 10m ago, or in ISO 8601; else now.")
    ] = None,
    home: HomeDir = None,
) -> None:
    """Show what the log says, now or at a moment.

    Every projection as JSON: the log folded up to the last event before that moment.
    """
    from pulse_core.app.snapshots import snapshot as snapshot_at
    from pulse_core.composition import FOLD
    from pulse_core.model.errors import UnknownName
    from pulse_core.model.moment import iso
    from upulse_cli.moments import moment
    from upulse_cli.speech import say
    from upulse_cli.wiring.home import found_home, home_context

    if part is not None and part not in FOLD.projections:
        raise UnknownName("projection", part, FOLD.projections)
    found = snapshot_at(home_context(found_home(home)), moment(at, "--at"))
    snapshot = found.snapshot
    parts = {name: spelled(snapshot.state.of(one)) for name, one in FOLD.projections.items()}
    for words in found.caveats:
        say(words)
    whole = {"at": iso(snapshot.now.at), "seq": snapshot.state.seq, **parts}
    put_json(parts[part] if part else whole)


def spelled(value: Any) -> Any:
    """Projections as JSON with the names of their fields; moments as ISO 8601."""
    from pulse_core.model.moment import Moment, iso

    if isinstance(value, Moment):
        return iso(value.at)
    if is_dataclass(value):
        return {field.name: spelled(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: spelled(held) for name, held in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: spelled(held) for name, held in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [spelled(held) for held in value]
    return value
