"""`upulse pause` and `resume`: the kill switch for everything but watching."""

from upulse_cli.options import AsJson, HomeDir, Why, open_home
from upulse_cli.output import put_json, say, say_when


def pause(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Only watch, don't act, until `upulse resume`."""
    record(home, "paused", why, as_json, "Paused: Pulse only watches. Go on with: upulse resume")


def resume(why: Why = "", as_json: AsJson = False, home: HomeDir = None) -> None:
    """Act again after `upulse pause`."""
    record(home, "resumed", why, as_json, "Resumed: Pulse acts.")


def record(option: str | None, kind: str, why: str, as_json: bool, words: str) -> None:
    """Record it and say so."""
    from pulse_core.app.append import append

    answer = append(open_home(option), kind, data={"why": why})
    if as_json:
        put_json(answer.event)
    else:
        say(words)
    say_when(answer)
