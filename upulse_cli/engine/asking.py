"""Asking the daemon for another revision of the engine, and hearing what came of it."""

from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_core.model.errors import PulseError
from pulse_core.projections import Engine
from pulse_core.projections.engine import ANSWERS
from upulse_cli.access import Answer, Wish, append
from upulse_cli.facts import facts_of
from upulse_cli.following import first, follow
from upulse_cli.standing import standing

Spelled = Mapping[str, Any]


def engine_of(home: Home) -> Engine:
    """What the log says of the engine."""
    return facts_of(home).engine


def demand_engine(home: Home) -> None:
    """Raise PulseError if the daemon that runs would never answer."""
    now = standing(home)
    if now["daemon"]["state"] == "running" and not now.get("engine"):
        raise PulseError(
            "this daemon runs no engine; make one with: upulse init, then: upulse daemon restart"
        )


def asked(home: Home, wish: Wish) -> tuple[Answer, Spelled | None]:
    """Have it recorded, and wait for the answer; none if no daemon runs, since the next one answers."""
    demand_engine(home)
    request = append(home, wish)
    if not request.by_daemon:
        return request, None
    events = follow(home, int(request.event["seq"]), ANSWERS, brief=True)
    return request, first(events, lambda event: event["cause"] == request.event["id"])


def refuse(answer: Spelled) -> None:
    """Raise PulseError if the answer is no."""
    if answer["kind"] == "promote-refused":
        raise PulseError(f"the engine stays as it is: {answer['data']['why']}")
