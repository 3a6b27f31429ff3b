"""Pulse brings a dead process back; one that dies again and again needs somebody to look at it."""

from datetime import date, timedelta

from pulse_core import Effect, Inner, Snapshot, Verdict

from projections.deaths import DAY_US

TOO_MANY = 5


async def too_many_deaths(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell of each guarded process that died, or did not serve, too often today."""
    verdict = await inner(prev, curr)
    counted = curr.own["deaths"]
    if counted["day"] != curr.now.at // DAY_US:
        return verdict
    times_of = {one.name: counted["of"].get(one.name, 0) for one in curr.settings.process}
    often = {name: times for name, times in times_of.items() if times >= TOO_MANY}
    return verdict.plus(*(notice(name, times, counted["day"]) for name, times in often.items()))


def notice(name: str, times: int, day: int) -> Effect:
    """What people are told; day: since 1970, in UTC."""
    title = f"{name} went down {times} times on {date(1970, 1, 1) + timedelta(days=day)} (UTC)"
    text = f"find out why with: upulse why {name}"
    return Effect(action="notify", key=f"notify:deaths:{name}", params={"title": title, "text": text}, reason=title)
