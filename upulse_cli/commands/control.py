"""`upulse pause` and `resume`: the kill switch for everything but watching."""

import typer

from upulse_cli.options import AsJson, HomeDir, Why
from upulse_cli.output import put_json, say


def add_to(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(pause)
    app.command()(resume)


def pause(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Only watch, don't act, until `upulse resume`."""
    turn(home, "paused", why, as_json, "Paused: Pulse only watches. Go on with: upulse resume")


def resume(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Act again after `upulse pause`."""
    turn(home, "resumed", why, as_json, "Resumed: Pulse acts.")


def turn(option: str | None, kind: str, why: str, as_json: bool, words: str) -> None:
    """Record the turn and say it."""
    from pulse_core.app.append import AppendRequest, append
    from upulse_cli.output import say_when
    from upulse_cli.wiring.home import found_home, home_context

    answer = append(home_context(found_home(option)), AppendRequest(kind, data={"why": why}))
    if as_json:
        put_json(answer.event)
    else:
        say(words)
    say_when(answer)
