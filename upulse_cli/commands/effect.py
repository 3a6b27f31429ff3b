"""`upulse effect`: what Pulse is requested to do, by hand too."""

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pulse_core.model.json_types import read_json
from upulse_cli.options import AsJson, HomeDir, Wait, Why, completed_by, group, open_home
from upulse_cli.output import put, put_or_draw, say, say_when

if TYPE_CHECKING:
    from pulse_core.app.append import Appended
    from pulse_core.app.context import HomeContext

app = group("Show, add, cancel and retry effects.")

MEANT = "Its id, enough of its beginning or end, or its key."
EffectId = Annotated[
    str, typer.Argument(metavar="EFFECT", help=MEANT, autocompletion=completed_by("effects"))
]
OpenEffectId = Annotated[
    str, typer.Argument(metavar="EFFECT", help=MEANT, autocompletion=completed_by("open effects"))
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=JSON", help="A parameter; text that is no JSON is taken as it is."),
]


@app.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Settled ones too.")] = False,
    last: Annotated[
        int, typer.Option("-n", metavar="COUNT", min=1, help="With --all: the newest so many.")
    ] = 50,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """List open effects, or the newest of all."""
    from pulse_core.app.effects import newest_effects, open_effects

    where = open_home(home)
    effects = [one.spelled() for one in (newest_effects(where, last) if everything else open_effects(where))]
    nothing = "None yet." if everything else "There are no open effects; --all lists the settled ones."
    put_or_draw(effects, as_json, "views.effects.table", nothing)


@app.command()
def show(effect: EffectId, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show an effect and its events."""
    from pulse_core.app import effects

    where = open_home(home)
    one = effects.effect(where, effect)
    events = [event.spelled() for event in (one.wish, *one.about)]
    told = {**one.spelled(), "held_back": effects.held_back(where, one) or None, "events": events}
    put_or_draw(told, as_json, "views.effects.details")


@app.command()
def add(
    action: Annotated[str, typer.Argument(help="What to do, as run-command.")],
    key: Annotated[str, typer.Option("--key", help="Its key, unique among open effects.")],
    param: Params = None,
    not_after: Annotated[
        str | None, typer.Option("--not-after", metavar="DURATION", help="Don't begin it later than this.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="WORDS", help="Why; kept in the log.")] = "",
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="It may be done twice without harm.")
    ] = False,
    wait: Wait = False,
    home: HomeDir = None,
) -> None:
    """Wish for an action and print the id.

    The id of the effect is printed once it is on disk.

    If an effect with this key is open already, its id is printed instead.
    """
    from pulse_core.app.effects import add_effect
    from upulse_cli.time_args import duration_arg

    wish: dict[str, Any] = {"action": action, "key": key, "params": parameters(param or ()), "reason": reason}
    if idempotent:
        wish["params"]["idempotent"] = True
    if not_after is not None:
        wish["not_after"] = time.time_ns() // 1000 + duration_arg(not_after, "--not-after")
    where = open_home(home)
    tell(where, add_effect(where, wish, to_wait=wait), wait)


@app.command()
def cancel(effect: OpenEffectId, why: Why = "", home: HomeDir = None) -> None:
    """Cancel one that is pending, stop one that runs."""
    from pulse_core.app import effects

    where = open_home(home)
    one = effects.effect(where, effect)
    answer = effects.cancel_effect(where, one, why)
    say(f"Asked to cancel {one.wish.subject}.")
    say_when(answer)


@app.command()
def retry(
    effect: EffectId,
    force: Annotated[bool, typer.Option("--force", help="Also one that was done.")] = False,
    wait: Wait = False,
    home: HomeDir = None,
) -> None:
    """Wish again for what did not work.

    That is: what failed, is unknown or was cancelled. Prints the new effect's id.
    """
    from pulse_core.app import effects

    where = open_home(home)
    again = effects.retry_effect(where, effects.effect(where, effect), force=force, to_wait=wait)
    tell(where, again, wait)


def tell(home: "HomeContext", answer: "Appended", wait: bool) -> None:
    """Print the effect's id, and wait for its end if asked to."""
    put(str(answer.event["id"]))
    if answer.existing:
        say(f"The key {answer.event['subject']!r} is open already: this is the id of that effect.")
    say_when(answer)
    if wait:
        from pulse_core.app.follow import settled

        outcome = settled(home, str(answer.event["id"]))
        say(f"{outcome['kind']}: {json.dumps(outcome['data'])}")
        raise typer.Exit(0 if outcome["kind"] == "effect-acked" else 1)


def parameters(given: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """`name=JSON` words as one object; a usage error for a word without `=` or a name given twice."""
    found: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{word!r} is not NAME=JSON, as 'argv=[\"true\"]'", param_hint="--param")
        if name in found:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--param")
        try:
            found[name] = read_json(text)
        except json.JSONDecodeError:
            found[name] = text
        except ValueError as error:
            words = f"{name!r} is JSON that nothing can use: {error}"
            raise typer.BadParameter(words, param_hint="--param") from error
    return found
