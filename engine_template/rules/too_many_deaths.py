"""Pulse brings a dead process back; one that dies again and again needs somebody to look at it."""

from datetime import date, timedelta

from pulse_core import Effect, Inner, Snapshot, Verdict

from projections.deaths import DAY_US


async def too_many_deaths(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell of each guarded process that died, or did not serve, too often today; and not again what was told."""
    verdict = await inner(prev, curr)
    counted = curr.own["deaths"]
    if counted["day"] != curr.now.at // DAY_US:
        return verdict
    guarded = [one.name for one in curr.settings.process]
    often = [name for name in guarded if name in counted["news"] and not is_told(name, counted["news"][name], curr)]
    return verdict.plus(*(notice(name, counted["of"][name], counted["day"]) for name in often))


def is_told(name: str, since: int, curr: Snapshot) -> bool:
    """Whether people were told of its deaths since this time, in UTC microseconds."""
    told = curr.notices[f"deaths:{name}"]
    return told is not None and told.last.at >= since


def notice(name: str, times: int, day: int) -> Effect:
    """What people are told; day: since 1970, in UTC."""
    title = f"{name} went down {times} times on {date(1970, 1, 1) + timedelta(days=day)} (UTC)"
    text = f"find out why with: upulse why {name}"
    params = {"title": title, "text": text, "once": True}  # it does not last, so that nothing reminds of it
    return Effect(action="notify", key=f"notify:deaths:{name}", params=params, reason=title)
