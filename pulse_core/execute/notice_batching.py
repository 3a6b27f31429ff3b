"""Batches outgoing notices: which of the waiting ones are sent now as one message, and when to check again.

Until a notice is sent it is pending on disk and takes no slot; nothing is tried while the network is down.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pulse_core.execute.effect_tasks import begin_wait
from pulse_core.model.durations import duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import DOWN, NETWORK, OUTWARD, TRIAL_NOTICE
from pulse_core.model.text import count
from pulse_core.model.urls import host_of, is_address, is_here
from pulse_core.projections.effects import OpenEffect, Phase, Source, source_of
from pulse_core.projections.notices import DEFAULT_SEVERITY, HOUR, PREFIX, Notices
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings

MAX_NOTICES = 30
"""Notices in one message; more go into the next one."""

UNREACHED_PAUSE, UNREACHED_SHARE = 120 * US_PER_SECOND, 4
"""How long a new notice waits at most after others failed that go to no other address, and for what share of the time for
which these have failed: each try is two rows of the log."""

USED_UP = ": the messages of this hour are used up ([notify] per_hour)"
RETRY_SOON = 900 * US_PER_SECOND
"""How long a failed notice waits at most once another one was delivered."""


class NoticeBatch(NamedTuple):
    """The notices to send now as one message; or microseconds until some may be sent (None: only after an event)."""

    effects: tuple[OpenEffect, ...] = ()
    wait_us: int | None = None


def is_outgoing_notice(effect: Effect | OpenEffect, settings: Settings) -> bool:
    """Whether it is a notice and an address is configured."""
    return bool(settings.notice_urls) and effect.action in OUTWARD


def next_batch(waiting: Sequence[OpenEffect], state: State, settings: Settings, now: Moment) -> NoticeBatch:
    """The next batch of the waiting notices: those of authors' rules last, else in the order of the log. Pure."""
    if not waiting or is_network_down(state, settings):
        return NoticeBatch()
    group_us = settings.notify.group
    # Survival's first: each message has room for so many.
    waiting = sorted(waiting, key=lambda one: is_of_rules(one.event.data))
    whose = [(severity_of(one.params), is_of_rules(one.event.data)) for one in waiting]
    full = {one: rate_limit_wait(state.notices, *one, settings, now) for one in {*whose}}
    fulls = [full[one] for one in whose]
    unreached = unreached_notices(state, now)
    waits = [
        max(
            notice_wait(one, state.notices, group_us, now),
            0 if one.id in state.notices.sent_to else limited,
            unreached_wait(one, unreached, settings, now),
        )
        for one, limited in zip(waiting, fulls, strict=True)
    ]
    if (first := min(waits)) > 0:
        return NoticeBatch(wait_us=first)
    due_now = [one for one, wait in zip(waiting, waits, strict=True) if not wait]
    # Others that may join though by themselves they would wait, if the limit allows that: a failed one once half of its
    # backoff is over, so that those that fail for the same reason are batched.
    others = [
        one
        for one, wait, limited in zip(waiting, waits, fulls, strict=True)
        if wait
        and (not limited or one.id in state.notices.sent_to)
        and (not is_failed(one) or now.since(one.moment) * 2 >= one.retry_us)
    ]
    return NoticeBatch((*due_now, *others)[:MAX_NOTICES])  # those that are due first, so that none starves


def hold_reason(
    state: State, settings: Settings, now: Moment, severity: str = DEFAULT_SEVERITY, of_rules: bool = False
) -> str:
    """Why no new notice of this severity is sent at this moment, in words; empty if one may be.

    of_rules: whether it is one of an author's rule.
    """
    if is_network_down(state, settings) and (condition := state.conditions[NETWORK]):
        return f"waits for the network, which is {condition.state}, {condition.age(now)}"
    if full := rate_limit_wait(state.notices, severity, of_rules, settings, now):
        return f"waits for {duration_text(full)}{USED_UP}"
    return ""


def undelivered_reason(state: State, settings: Settings, now: Moment) -> str:
    """Why the open notices are not delivered yet, in words; empty if nothing holds any of them back."""
    opened = [one for id_ in state.notices.open if (one := state.effects.open.get(id_))]
    if is_network_down(state, settings):
        return _of_so_many(len(opened), hold_reason(state, settings, now))
    waits = Counter(
        why
        for one in opened
        if one.phase is not Phase.EXECUTING and one.id not in state.notices.sent_to
        if (why := hold_reason(state, settings, now, severity_of(one.params), is_of_rules(one.event.data)))
    )
    critical = {hold_reason(state, settings, now, "critical", of_rules) for of_rules in (False, True)}
    words = ""
    for why, number in waits.items():
        if len(waits) > 1:  # critical ones have another limit, and one reason
            who = count(number, "critical one" if why in critical else "other")
            words = f"{words.removesuffix(USED_UP)}{words and ', '}{who} {_of_so_many(number, why)}"
        elif number == len(opened):
            return _of_so_many(number, why)
        else:
            words = f"{number} of them {_of_so_many(number, why)}"
    return "; ".join(filter(None, (words, failure_reason(state))))


def _of_so_many(number: int, why: str) -> str:
    return why if number == 1 else why.replace("waits", "wait", 1)


def failure_reason(state: State) -> str:
    """That notices were tried and did not arrive everywhere, in words; empty if there are none."""
    opened = (state.effects.open.get(id_) for id_ in state.notices.open)
    failed = [one.id for one in opened if one is not None and (is_failed(one) or one.attempt > 1)]
    reached = Counter(one for id_ in failed for one in state.notices.sent_to.get(id_, ()))
    unsent = sum(not state.notices.sent_to.get(id_) for id_ in failed)
    words = [f"{unsent} could not be sent so far"] if unsent else []
    words += [
        f"{number} reached {address} and not every address so far" for address, number in reached.items()
    ]
    return f"{', '.join(words)}, and will be tried again; see upulse effect list" if words else ""


def is_network_down(state: State, settings: Settings) -> bool:
    """Whether the network is known to be down and no address is local.

    If any target answers, so may the address; a condition without a watcher proves nothing.
    """
    condition = state.conditions[NETWORK]
    watched = settings.network.dns or settings.network.http
    down = bool(watched) and condition is not None and condition.state == DOWN
    return down and not any(is_here(url) or is_address(host_of(url)) for url in settings.notice_urls)


def is_failed(effect: OpenEffect) -> bool:
    """Whether its last attempt failed."""
    return effect.phase is Phase.RETRYING


def notice_wait(effect: OpenEffect, notices: Notices, group_us: int, now: Moment) -> int:
    """Microseconds until the notice may be sent: the grouping time, or after a failure its backoff."""
    if effect.phase is Phase.PENDING:
        return max(0, group_us - now.since(effect.moment))
    left, reached = begin_wait(effect, now, 0, None), notices.reached
    if reached is None or (reached.boot == effect.moment.boot and reached.mono < effect.moment.mono):
        return left
    return min(left, max(0, RETRY_SOON - now.since(effect.moment)))


def unreached_notices(state: State, now: Moment) -> Sequence[OpenEffect]:
    """Those that have reached nobody and failed later than another one was delivered; none if none failed lately."""
    notices = state.notices
    if not any(now.since(failed) < UNREACHED_PAUSE for failed in notices.failed.values()):
        return ()
    return [
        state.effects.open[id_]
        for id_, failed in notices.failed.items()
        if id_ in state.effects.open
        and id_ not in notices.sent_to
        and (not (reached := notices.reached) or (reached.boot == failed.boot and reached.mono < failed.mono))
    ]


def unreached_wait(
    effect: OpenEffect, unreached: Sequence[OpenEffect], settings: Settings, now: Moment
) -> int:
    """Microseconds until a new notice may be sent, to none but addresses that took nothing just now; 0 if it may be now."""
    if effect.phase is not Phase.PENDING or effect.event.subject == TRIAL_NOTICE:
        return 0
    mine = set(_addresses(effect, settings))
    same = [one for one in unreached if mine.issubset(_addresses(one, settings))]
    if not same:
        return 0
    last = max((one.moment for one in same), key=lambda moment: moment.at)
    age = max(last.since(one.event.moment) for one in same)
    return max(0, min(UNREACHED_PAUSE, age // UNREACHED_SHARE) - now.since(last))


def _addresses(effect: OpenEffect, settings: Settings) -> Sequence[str]:
    return settings.notice_urls_for(severity_of(effect.params), effect.event.subject.removeprefix(PREFIX))


def severity_of(params: Mapping[str, Json]) -> str:
    """The severity of a notice with these params."""
    return str(params.get("severity", DEFAULT_SEVERITY))


def is_of_rules(data: str) -> bool:
    """Whether a rule of an engine or a plugin requested the effect with this data."""
    return source_of(data) is Source.RULES


def rate_limit_wait(notices: Notices, severity: str, of_rules: bool, settings: Settings, now: Moment) -> int:
    """Microseconds until the hourly limit allows another new message; 0 if it may be sent now.

    As many again are for critical ones alone, so that none of these waits behind others. What authors' rules have sent
    counts for them alone: they may send without end, and call all of it critical.
    """
    most = settings.notify.per_hour * (2 if severity == "critical" else 1)
    sent = notices.sent
    if not of_rules and notices.sent_by_rules:
        theirs = frozenset(notices.sent_by_rules)
        sent = tuple(then for then in sent if then not in theirs)
    return max(0, HOUR - now.since(sent[-most])) if most and len(sent) >= most else 0
