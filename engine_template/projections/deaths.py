"""How often each guarded process died today."""

from typing import Any

from pulse_core import Event, Projection

DAY_US = 86_400_000_000


def counted(state: Any, event: Event) -> Any:
    """The counts after one more death; a new day (in UTC) begins with none.

    Who was never there did not die, and whom Pulse or a person ended is not counted.
    """
    if getattr(event.payload, "pid", None) is None or getattr(event.payload, "intended", False):
        return state
    today = event.at // DAY_US
    counts = state["of"] if state["day"] == today else {}
    return {"day": today, "of": {**counts, event.subject: counts.get(event.subject, 0) + 1}}


deaths = Projection(start={"day": 0, "of": {}}, step=counted, kinds=frozenset({"process-died"}))
