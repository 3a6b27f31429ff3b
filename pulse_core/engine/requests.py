"""People's requests to the engine, and when they are refused. Pure."""

from pulse_core.model.event import Event
from pulse_core.model.kinds import PromoteRequested
from pulse_core.projections import Engine


def refusal(request: Event, engine: Engine) -> str:
    """Why the request is refused; empty if it is not."""
    payload = request.payload
    if payload is None:
        return "what was asked for was redacted"
    if isinstance(payload, PromoteRequested):
        if payload.previous != engine.commit:
            in_force = engine.commit[:12] or "none"
            return f"another commit is in force by now ({in_force}); look at it, and promote again"
        return ""
    if not (target := target_of(request, engine)):
        return "there is no earlier commit to go back to"
    return f"{target[:12]} is in force already" if target == engine.commit else ""


def target_of(request: Event, engine: Engine) -> str:
    """The commit that a rollback goes to: the named one, else the previous one; empty without one."""
    return request.subject or engine.previous
