"""`upulse silence`: hold back what Pulse would do, for a while."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir, Why, completed_by, group, open_home
from upulse_cli.output import draw, put, put_json, say, say_when

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext

silences = group("Hold effects back for a while: list, add and remove silences.")


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(silences, name="silence")


def listed(home: "HomeContext") -> Mapping[str, Any]:
    """The silences that hold, and those that come again, by the home's files."""
    from pulse_core.app.state import current_state, settings_for
    from pulse_core.silences.listing import list_silences

    state = current_state(home)
    return list_silences(state, settings_for(home, state).settings, home.clock.now())


def ids(home: "HomeContext", _begun: str) -> Iterator[str]:
    """The ids of the silences that hold."""
    return (one["id"] for one in listed(home)["silences"])


@silences.command("list")
def list_(as_json: AsJson = False, home: HomeDir = None) -> None:
    """List what is held back now, and what comes again.

    Those of the settings, [[silence]], whose times are in UTC there, are shown by the local clock.
    """
    found = listed(open_home(home))
    if as_json:
        return put_json(found)
    if not any(found.values()):
        return say("Nothing is held back; upulse silence add holds effects back for a while.")
    from upulse_cli.capabilities.silences.views import tables

    return draw(tables(found))


@silences.command()
def add(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN",
            help="Keys that are held back, as 'restart-process:*'; * and ? fit anything.",
        ),
    ],
    lasting: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, at most 30d.")],
    why: Why = "",
    home: HomeDir = None,
) -> None:
    """Hold back effects and print the id.

    Those of rules whose key fits. It ends by itself, also while no daemon runs; what you add by hand is not held
    back.
    """
    from pulse_core.app.append import append
    from pulse_core.app.state import current_state, settings_for
    from pulse_core.model.durations import UNITS, duration_text
    from pulse_core.model.glob import LONGEST, glob_fault
    from pulse_core.silences.admission import LONGEST_DAYS
    from pulse_core.silences.listing import unknown_pattern
    from upulse_cli.time_args import duration_arg
    from upulse_cli.views.events import short

    where = open_home(home)
    expires = duration_arg(lasting, "--for")
    if expires <= 0:
        raise typer.BadParameter("give a duration longer than 0", param_hint="--for")
    if expires > LONGEST_DAYS * UNITS["d"]:  # nobody would remember it
        words = f"give at most {LONGEST_DAYS}d; what is to be held back again and again is a [[silence]] of the settings"
        raise typer.BadParameter(words, param_hint="--for")
    if not pattern or len(pattern) > LONGEST or not pattern.isprintable():
        words = f"give 1 to {LONGEST} printable characters, as 'restart-process:gateway'"
        raise typer.BadParameter(words, param_hint="PATTERN")
    if words := glob_fault(pattern):
        raise typer.BadParameter(words, param_hint="PATTERN")
    state = current_state(where)
    if words := unknown_pattern(pattern, state, settings_for(where, state).settings):
        say(words)
    answer = append(where, "silence-added", pattern, {"expires_us": expires, "why": why})
    id_ = str(answer.event["id"])
    put(id_)
    say(
        f"{pattern} is held back for {duration_text(expires)}; end that with: upulse silence remove {short(id_).lstrip('…')}"
    )
    say_when(answer)


@silences.command()
def remove(
    silence: Annotated[
        str,
        typer.Argument(
            metavar="SILENCE",
            help="Its id, or enough of its beginning or end.",
            autocompletion=completed_by(ids),
        ),
    ],
    home: HomeDir = None,
) -> None:
    """End a silence before its time."""
    from pulse_core.app.append import append
    from pulse_core.silences.listing import find_silence

    where = open_home(home)
    one = find_silence(listed(where)["silences"], silence)
    answer = append(where, "silence-removed", one["id"])
    say(f"{one['match']} is no longer held back by this silence.")
    say_when(answer)
