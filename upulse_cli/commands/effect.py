"""`upulse effect`: what Pulse wishes to do, by hand too."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upulse_cli.options import AsJson, HomeDir, Why, group
from upulse_cli.speech import console, put, put_json, say

if TYPE_CHECKING:
    from pulse_adapters.config.home import Home
    from upulse_cli.lives import Life

app = group("Show, add, cancel and retry effects.")

EffectId = Annotated[
    str, typer.Argument(metavar="EFFECT", help="Its id, enough of its beginning or end, or its key.")
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
    from pulse_adapters.sqlite.event_reader import SqliteEventReader
    from pulse_core.app.state import current_state
    from upulse_cli.lives import life
    from upulse_cli.reading import last_effects
    from upulse_cli.wiring.home import found_home, home_context

    where = found_home(home)
    with SqliteEventReader(where.path) as log:
        if everything:
            wishes = list(reversed(last_effects(log, last)))
        else:
            wishes = [effect.event for effect in current_state(home_context(where)).effects.open.values()]
        effects = [life(log, wish).told() for wish in wishes]
    if as_json:
        return put_json(effects)
    from upulse_cli.views.effects import table

    if effects:
        return console().print(table(effects))
    return say("There are no open effects; --all lists the settled ones." if not everything else "None yet.")


@app.command()
def show(effect: EffectId, as_json: AsJson = False, home: HomeDir = None) -> None:
    """Show an effect and its events."""

    one = find(home, effect)
    events = [row.spelled() for row in (one.wish, *one.about)]
    told = {**one.told(), "held_back": held_back(home, one) or None}
    if as_json:
        return put_json({**told, "events": events})
    from upulse_cli.views.effects import details

    return console().print(details(told, events))


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
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is settled; exits 1 unless acked.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Wish for an action and print the id.

    The id of the effect is printed once it is on disk.

    If an effect with this key is open already, its id is printed instead.
    """
    from upulse_cli.wiring.home import found_home

    wish: dict[str, Any] = {"action": action, "key": key, "params": parameters(param or ()), "reason": reason}
    if idempotent:
        wish["params"]["idempotent"] = True
    if not_after is not None:
        wish["not_after"] = deadline(not_after)
    record(found_home(home), wish, None, wait)


@app.command()
def cancel(effect: EffectId, why: Why = "", home: HomeDir = None) -> None:
    """Cancel one that is pending, stop one that runs."""
    from pulse_core.app.append import AppendRequest, append
    from pulse_core.model.errors import PulseError
    from upulse_cli.speech import say_when
    from upulse_cli.wiring.home import found_home, home_context

    one = find(home, effect)
    if not one.is_open:
        raise PulseError(f"effect {one.wish.id} is {one.phase.value} already; there is nothing to cancel")
    answer = append(
        home_context(found_home(home)), AppendRequest("effect-cancel-requested", one.wish.id, {"why": why})
    )
    say(f"Asked to cancel {one.wish.subject}.")
    say_when(answer)


@app.command()
def retry(
    effect: EffectId,
    force: Annotated[bool, typer.Option("--force", help="Also one that was done.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is settled; exits 1 unless acked.")
    ] = False,
    home: HomeDir = None,
) -> None:
    """Wish again for what did not work.

    That is: what failed, is unknown or was cancelled. Prints the new effect's id.
    """
    from pulse_core.model.errors import PulseError
    from upulse_cli.wiring.home import found_home

    one = find(home, effect)
    if one.is_open:
        raise PulseError(f"effect {one.wish.id} is {one.phase.value} still; wait for its end, or cancel it")
    if one.phase.value == "acked" and not force:
        raise PulseError(f"effect {one.wish.id} was done; to do it again all the same, give --force")
    wish = {name: one.data[name] for name in ("action", "key", "params") if name in one.data}
    record(found_home(home), {**wish, "reason": f"retry of {one.wish.id}"}, one.wish.id, wait)


def find(option: str | None, name: str) -> "Life":
    """The effect of this id in the home that is meant."""
    from pulse_adapters.sqlite.event_reader import SqliteEventReader
    from upulse_cli.lives import life
    from upulse_cli.reading import effect_meant
    from upulse_cli.wiring.home import found_home

    with SqliteEventReader(found_home(option).path) as log:
        return life(log, effect_meant(log, name))


def held_back(option: str | None, one: "Life") -> str:
    """Why a notice that is open does not go out now, in words; nothing for any other effect."""
    if not one.is_open or one.data.get("action") != "notify":
        return ""
    from pulse_adapters.host.clock import SystemClock
    from pulse_core.app.state import current_state, settings_for
    from pulse_core.execute import notice_batching
    from upulse_cli.wiring.home import found_home, home_context

    where = found_home(option)
    facts = current_state(home_context(where))
    settings, _ = settings_for(home_context(where), facts)
    is_new = one.phase.value == "pending"
    if not settings.notify.urls or not (is_new or notice_batching.is_away(facts, settings)):
        return ""
    return notice_batching.held_back(facts, settings, SystemClock().now())


def record(home: "Home", data: Mapping[str, Any], cause: str | None, wait: bool) -> None:
    """Have the effect recorded, print its id, and wait for its end if asked to."""
    from pulse_core.app.append import AppendRequest, append
    from pulse_core.app.status import why_unheard
    from pulse_core.model.errors import PulseError
    from upulse_cli.speech import say_when
    from upulse_cli.wiring.home import home_context

    if wait and (why := why_unheard(home_context(home))):
        raise PulseError(f"{why}; or leave out --wait, since nobody would do it now")
    answer = append(home_context(home), AppendRequest("effect", str(data["key"]), data, cause))
    put(str(answer.event["id"]))
    if answer.existing:
        say(f"The key {data['key']!r} is open already: this is the id of that effect.")
    say_when(answer)
    if wait:
        from upulse_cli.following import settled  # and with it pydantic, which only waiting needs

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
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def deadline(text: str) -> int:
    """UTC microseconds so long from now."""
    import time

    from upulse_cli.moments import duration

    return time.time_ns() // 1000 + duration(text, "--not-after")
