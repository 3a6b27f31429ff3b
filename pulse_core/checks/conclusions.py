"""When a look counts, and what follows from it for the check's condition. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from pulse_core.checks.outcomes import CheckOutcome
from pulse_core.checks.settings import CheckSettings
from pulse_core.model.durations import duration_text
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import RUN_COMMAND
from pulse_core.projections.conditions import Conditions
from pulse_core.projections.gauges import FixedBound, Gauge, History, Streak, conclude_gauges
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.restart_plan import excuse_of, last_started

KEY, TOPIC = "checks", "check"
"""The watcher, and the topic of notices."""
PREFIX = f"{TOPIC}:"
"""What the names of the conditions begin with; the check's own follows."""
FAILING, HIGH, LOW, UNKNOWN = "failing", "high", "low", "unknown"
"""States: it is bad; its number is too high, or too low; nobody can look, which nothing but a person mends."""
MINUTE = 60 * US_PER_SECOND
"""How long nobody could look before that is a condition."""
LATE = 5 * US_PER_SECOND
"""How much later than it is due a look may be found without being overdue: it takes a while."""
NEVER = 1 << 62


def name_of(check: CheckSettings) -> str:
    """The name of its condition."""
    return f"{PREFIX}{check.name}"


def command_key(check: CheckSettings) -> str:
    """The key of the command that mends it."""
    return f"{RUN_COMMAND}:{name_of(check)}"


def excuse_for(check: CheckSettings, state: State, now: Moment) -> str:
    """Why it need not be well at this moment; empty if it must."""
    if state.effects.by_key(command_key(check)):
        return "the command that mends it is running"
    return excuse_of(check.restart, check.grace, state, now) if check.restart else ""


def last_mended(check: CheckSettings, state: State, now: Moment) -> Moment | None:
    """When something was last done about it: its process started, or its command run."""
    if check.restart:
        return last_started(check.restart, state, now)
    return state.effects.settled_at.get(command_key(check)) if check.runs else None


def is_outdated(moment: Moment, check: CheckSettings, state: State, now: Moment) -> bool:
    """Whether what was seen at this moment counts for nothing: something was done about it later, or not long before."""
    done, grace = last_mended(check, state, now), check.grace if check.restart else 0
    return done is not None and now.since(moment) >= now.since(done) - grace


def is_overdue(age: int, check: CheckSettings) -> bool:
    """Whether another look should be over when the newest one is this old (microseconds)."""
    return age >= check.every + LATE


def overdue_us(check: CheckSettings, curr: Snapshot) -> int:
    """How long ago its newest look was if its next one is overdue, as after a stop of the whole machine; else 0."""
    newest = curr.window(KEY).last
    # The sample may be a new one, by another check's look.
    before = int(newest.data.get(check.name, {}).get("overdue_us", 0)) if newest else 0
    age = curr.now.since(newest.moment) + before if newest else 0
    return age if is_overdue(age, check) else 0


def newest_words(check: CheckSettings, curr: Snapshot) -> str:
    """What the newest look found while the check's condition stands, and how long ago if another one is overdue; empty if
    there was none."""
    newest = curr.window(KEY).last
    words = _words_of(check, newest.data.get(check.name, {}), curr) if newest else ""
    age = overdue_us(check, curr)
    return f"{words}, seen {duration_text(age)} ago" if words and age else words


def _words_of(check: CheckSettings, look: Mapping[str, Json], curr: Snapshot) -> str:
    detail, stands = str(look.get("detail", "")), curr.conditions[name_of(check)]
    if detail and look.get("ok") is None and stands and stands.state != UNKNOWN:
        # That says nothing of what is wrong, nor that it is over.
        return f"{stands.described(curr.now)}; its last look could not be made: {detail}"
    if not look.get("ok"):
        return detail
    excuse = look.get("excused")
    counts = f"that counts for nothing: {excuse}" if excuse else f"{check.needed} in a row end it"
    return f"its last look found nothing wrong ({counts})"


class CheckHistory(NamedTuple):
    """Recent looks: bad ones in a row that count, the first of them, good ones in a row, since when nobody could look, and
    since when it is over its bound."""

    bad: int = 0
    first: Moment | None = None
    good: int = 0
    unknown: Moment | None = None
    streak: Streak | None = None


class Look(NamedTuple):
    """One look: what it found, when it began, and the history before it. now: when it was over; excuse: why it counts for
    nothing; conditions: the raised ones."""

    check: CheckSettings
    outcome: CheckOutcome
    began: Moment
    history: CheckHistory
    conditions: Conditions
    now: Moment
    excuse: str = ""


def conclude(look: Look) -> tuple[tuple[Draft, ...], CheckHistory]:
    """The events that follow, once enough looks agree and it was bad for long enough, and the history from now on."""
    check, name, before = look.check, name_of(look.check), look.history
    if look.excuse:
        return (), CheckHistory()
    gauge, stands = gauge_of(check, look.outcome), look.conditions[name]
    unknown = (before.unknown or look.began) if gauge.value is None else None
    if unknown and look.now.since(unknown) >= MINUTE:
        gauge = gauge._replace(value=1.0)
        if before.streak is None:
            before = before._replace(streak=Streak(unknown, look.now))
    if gauge.value is None:
        return (), before._replace(unknown=unknown)
    # While it stands, it is remembered when it was last seen wrong: as the look began, since it tells nothing of later.
    streak, known = before.streak if stands else None, before.streak
    if _is_over(gauge, stands is not None):
        # Also by the first looks after a restart, which are too few to have another one follow.
        streak = (streak or Streak(look.began, look.began))._replace(seen=look.began) if stands else None
        # It was wrong as this look began, however long that waited for an answer.
        known = known or Streak(look.began, look.now)
        history = CheckHistory(before.bad + 1, before.first or look.began, 0, unknown, streak)
        if check.needed > 1 and not unknown:  # what nobody could look at has not failed
            gauge = gauge._replace(words=f"{gauge.words}; {history.bad} checks in a row failed")
    else:
        history = CheckHistory(good=before.good + 1, streak=streak)
    if max(history.bad, history.good) < check.needed:  # too few to raise it, or to clear it
        if stands:
            return (), history
        gauge = gauge._replace(bound=FixedBound(gauge.bound.raise_, gauge.bound.clear, NEVER))
    patience = MINUTE + 2 * (check.every + check.timeout)
    over = History(look.conditions, {name: known} if known else {}, patience)
    drafts, streaks = conclude_gauges([gauge], (), over, look.now)
    streak = streaks.get(name)
    return drafts, history._replace(streak=streak._replace(seen=look.began) if streak else None)


def gauge_of(check: CheckSettings, outcome: CheckOutcome) -> Gauge:
    """What was found beside its bound; without a value if nobody could look."""
    name = name_of(check)
    if outcome.is_measured and (bound := check.bound):
        fixed = FixedBound(bound.raise_, bound.clear, check.for_)
        return Gauge(name, fixed, outcome.value, outcome.words, LOW if bound.below else HIGH, bound.below)
    state = UNKNOWN if outcome.value is None else FAILING
    good_or_bad = FixedBound(1.0, 0.5, check.for_)
    return Gauge(name, good_or_bad, outcome.value, outcome.words, state, is_number=False)


def is_bad(check: CheckSettings, outcome: CheckOutcome, conditions: Conditions) -> bool | None:
    """Whether what was found is bad; None if nobody could look."""
    gauge = gauge_of(check, outcome)
    return None if gauge.value is None else _is_over(gauge, conditions[gauge.name] is not None)


def well_by_new_bound(check: CheckSettings, outcome: CheckOutcome, conditions: Conditions) -> str:
    """What was found, if that is well, and bad by the bound with which its condition was raised; else empty."""
    gauge = gauge_of(check, outcome)
    stands = conditions[gauge.name]
    if stands is None or stands.bound is None or not gauge.is_number or _is_over(gauge, stands=True):
        return ""
    return gauge.words if gauge.is_over(stands.bound) else ""


def _is_over(gauge: Gauge, stands: bool) -> bool:
    return gauge.is_over(gauge.bound.clear if stands else gauge.bound.raise_)
