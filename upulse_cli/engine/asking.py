"""Asking the daemon for another revision of the engine, and hearing what came of it."""

from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_core.app.append import Appended, AppendRequest, append
from pulse_core.app.follow import first, follow
from pulse_core.app.state import current_state
from pulse_core.app.status import home_status
from pulse_core.model.errors import PulseError
from pulse_core.projections import Engine
from pulse_core.projections.engine import ANSWERS
from upulse_cli.wiring.home import home_context

Spelled = Mapping[str, Any]


def engine_of(home: Home) -> Engine:
    """What the log says of the engine."""
    return current_state(home_context(home)).engine


def demand_engine(home: Home) -> None:
    """Raise PulseError if the daemon that runs would never answer."""
    now = home_status(home_context(home))
    if now["daemon"]["state"] == "running" and not now.get("engine"):
        raise PulseError(
            "this daemon runs no engine; make one with: upulse init, then: upulse daemon restart"
        )


def asked(home: Home, wish: AppendRequest) -> tuple[Appended, Spelled | None]:
    """Have it recorded, and wait for the answer; none if no daemon runs, since the next one answers."""
    demand_engine(home)
    request = append(home_context(home), wish)
    if not request.by_daemon:
        return request, None
    events = follow(home_context(home), int(request.event["seq"]), ANSWERS, brief=True)
    return request, first(events, lambda event: event["cause"] == request.event["id"])


def refuse(answer: Spelled) -> None:
    """Raise PulseError if the answer is no."""
    if answer["kind"] == "promote-refused":
        raise PulseError(f"the engine stays as it is: {answer['data']['why']}")
