"""Effects by hand: those that are open or were, why a notice waits, and wishes to add, cancel or repeat one."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulse_core.app.append import Appended, append
from pulse_core.app.context import HomeContext
from pulse_core.app.effect_timeline import EffectTimeline, effect_meant, effect_timeline, last_effects
from pulse_core.app.follow import LOOK, settled
from pulse_core.app.status import why_unheard
from pulse_core.model.errors import PulseError
from pulse_core.model.names import SETTLING
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.effects import Phase

NEWEST = 2_000
"""Rows at the end of the log in which effects are searched: a person waits at a prompt."""


def open_effects(home: HomeContext) -> Sequence[EffectTimeline]:
    """The effects that nothing has settled, oldest first."""
    from pulse_core.app.state import current_state  # settings and projections take long to import

    with home.events() as log:
        wishes = [effect.event for effect in current_state(home).effects.open.values()]
        return [effect_timeline(log, wish) for wish in wishes]


def newest_effects(home: HomeContext, count: int) -> Sequence[EffectTimeline]:
    """The newest effects, settled or not, oldest first."""
    with home.events() as log:
        return [effect_timeline(log, wish) for wish in reversed(last_effects(log, count))]


def effect(home: HomeContext, name: str) -> EffectTimeline:
    """The effect of this id, of enough of it, or the newest one of this key."""
    with home.events() as log:
        return effect_timeline(log, effect_meant(log, name))


def held_back(home: HomeContext, one: EffectTimeline) -> str:
    """Why a notice that is open does not go out now, in words; nothing for any other effect."""
    if not one.is_open or one.data.get("action") != "notify":
        return ""
    from pulse_core.app.state import current_state, settings_for
    from pulse_core.execute import notice_batching

    state = current_state(home)
    settings = settings_for(home, state).settings
    is_new = one.phase.value == "pending"
    if not settings.notice_urls or not (is_new or notice_batching.is_network_down(state, settings)):
        return ""
    severity = notice_batching.severity_of(one.data.get("params", {}))
    of_rules = notice_batching.is_of_rules(one.wish.data)
    return notice_batching.hold_reason(state, settings, home.clock.now(), severity, of_rules)


def add_effect(
    home: HomeContext, data: Mapping[str, Any], *, cause: str | None = None, to_wait: bool = False
) -> Appended:
    """Wish for an action. If an effect with its key is open already, the answer is that one.

    to_wait: whether the caller will wait for its end; refused while no daemon would do it.
    """
    if to_wait and (why := why_unheard(home)):
        raise PulseError(f"{why}; or leave out --wait, since nobody would do it now")
    return append(home, "effect", str(data["key"]), data, cause)


def carry_out(home: HomeContext, action: str, of: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have the daemon do this about `of`, which the key names, and wait for the result. Raises PulseError."""
    wish = {"action": action, "key": f"{action}:{of}", "params": params}
    outcome = settled(home, str(add_effect(home, wish, to_wait=True).event["id"]))
    said = outcome["data"] or {}
    if outcome["kind"] != "effect-acked":
        raise PulseError(said.get("error") or said.get("why") or "it was not done")
    return dict(said.get("result", {}))


def outcome_within(home: HomeContext, id_: str, seconds: float, or_tried: bool = False) -> EffectTimeline:
    """The effect of this id once it is settled (with or_tried: or has failed once), or as it stands after so long."""
    until = time.monotonic() + seconds
    while (one := effect(home, id_)).is_open and time.monotonic() < until:
        if or_tried and one.phase is Phase.RETRYING:
            break
        time.sleep(LOOK)
    return one


def cancel_effect(home: HomeContext, one: EffectTimeline, why: str) -> Appended:
    """Ask to cancel an effect that is pending, or to stop one that runs."""
    if not one.is_open:
        raise PulseError(f"effect {one.wish.id} is {one.phase.value} already; there is nothing to cancel")
    return append(home, "effect-cancel-requested", one.wish.id, {"why": why})


def retry_effect(
    home: HomeContext, one: EffectTimeline, *, force: bool = False, to_wait: bool = False
) -> Appended:
    """Wish again for what did not work; `force`: also for what did."""
    if one.is_open:
        raise PulseError(f"effect {one.wish.id} is {one.phase.value} still; wait for its end, or cancel it")
    if "action" not in one.data:
        raise PulseError(
            f"what it was to do is not known any more: effect {one.wish.id} is redacted or damaged; "
            "wish for it anew: upulse effect add"
        )
    if one.phase.value == "acked" and not force:
        raise PulseError(f"effect {one.wish.id} was done; to do it again all the same, give --force")
    wish = {name: one.data[name] for name in ("action", "key", "params") if name in one.data}
    wish["reason"] = f"retry of {one.wish.id}"
    return add_effect(home, wish, cause=one.wish.id, to_wait=to_wait)


def effect_names(home: HomeContext, prefix: str, only_open: bool = False) -> Iterator[str]:
    """Keys of the newest effects; their ids, too, once something of the word is typed."""
    with home.events() as log:
        since = max(0, log.head().seq - NEWEST)
        events = list(log.events(EventQuery(since_seq=since, kinds=("effect", *SETTLING))))
    settled = {event.subject for event in events if event.kind != "effect"}
    effects = [
        event
        for event in reversed(events)
        if event.kind == "effect" and not (only_open and event.id in settled)
    ]
    yield from (event.subject for event in effects)
    if prefix:
        yield from (event.id for event in effects)
