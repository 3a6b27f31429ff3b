"""How often each guarded process died today."""

from typing import Any

from pulse_core import Event, Projection

DAY_US = 86_400_000_000
TOO_MANY = 5


def counted(state: Any, event: Event) -> Any:
    """The counts after one more death, and when each was last worth telling; a new day (in UTC) begins with none.

    Who was never there did not die, and whom Pulse or a person ended is not counted.
    """
    if getattr(event.payload, "pid", None) is None or getattr(event.payload, "intended", False):
        return state
    today, name = event.at // DAY_US, event.subject
    counts, news = (state["of"], state["news"]) if state["day"] == today else ({}, {})
    times = counts.get(name, 0) + 1
    if is_news(times):
        news = {**news, name: event.at}
    return {"day": today, "of": {**counts, name: times}, "news": news}


def is_news(times: int) -> bool:
    """Whether so many deaths are worth telling: `TOO_MANY`, then twice as many, and so on."""
    spans, rest = divmod(times, TOO_MANY)
    return not rest and spans.bit_count() == 1


deaths = Projection(start={"day": 0, "of": {}, "news": {}}, step=counted, kinds=frozenset({"process-died"}))
