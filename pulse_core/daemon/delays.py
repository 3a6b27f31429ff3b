"""What holds back the restarts of dead processes and the answers to conditions, and for how long, as each tick finds it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pulse_core.app.compute_status import cause_of_hold, process_conditions
from pulse_core.model.event import Draft
from pulse_core.model.home_status import HeldStatus
from pulse_core.model.kinds import AnswerDelayed, RestartDelayed
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.names import NOTIFY
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.state import Snapshot
from pulse_core.rules.survival.holds import answered_condition
from pulse_core.rules.survival.notices import is_told

LEAST_US = US_PER_SECOND // 10
"""Shorter ones are not recorded."""
FIRST_US = 10 * US_PER_SECOND
"""How long after its first tick a daemon may find for the first time what was so before it began: all has been looked at."""
LASTING_US = US_PER_SECOND
"""One that has lasted for so long is recorded while it lasts, too: the daemon may be killed before it ends."""

Kind = type[RestartDelayed] | type[AnswerDelayed]
Delayed = tuple[Kind, str]
"""The kind that tells of it, and the process or condition."""


class DelayCause(NamedTuple):
    """What holds something back, in words, and the processes that it waits for, if it is these."""

    by: str
    waits_for: frozenset[str] = frozenset()


class Delay(NamedTuple):
    """What holds something back, since when, in which tick that was found, whether it is recorded that it does, and whether
    it may have done so before this daemon began."""

    cause: DelayCause
    since: Moment
    found: Moment
    is_recorded: bool = False
    is_older: bool = False


class Delays:
    """Follows what holds back each of these from tick to tick; one that another takes over from, or that ends, is told."""

    def __init__(self) -> None:
        self._current: dict[Delayed, Delay] = {}
        self._began: Moment | None = None

    def after(self, curr: Snapshot, verdict: Verdict, withheld: Sequence[WithheldEffect]) -> Sequence[Draft]:
        """The delays that have ended by this tick; verdict: of its reflex; withheld: what survival held back in it."""
        waits: dict[Delayed, DelayCause] = {
            (AnswerDelayed, name): DelayCause(by) for name, by in verdict.held
        }
        ended = self._follow({**waits, **dict(_answers(curr, withheld)), **dict(_restarts(curr))}, curr.now)
        self._began = began = self._began or curr.now
        if curr.now.since(began) <= FIRST_US:
            new = [(what, one) for what, one in self._current.items() if one.found == curr.now]
            for what, one in new:
                wrong = _wrong_since(what, curr)
                is_older = one.is_older or (wrong is not None and began.since(wrong) > 0)
                self._current[what] = one._replace(is_older=is_older)
        return ended

    def began_at(self, now: Moment) -> bool:
        """Whether one that lasts began in the tick of this moment."""
        return any(one.found == now for one in self._current.values())

    def lasting(self, now: Moment) -> Sequence[Draft]:
        """Those that still last after this tick, for a second by now, and of which nothing is recorded yet."""
        drafts = []
        for what, one in self._current.items():
            if not one.is_recorded and now.since(one.found) >= LASTING_US:
                self._current[what] = one._replace(is_recorded=True)
                drafts.append(_draft(what, one, now.since(one.since), lasts=True))
        return drafts

    def end(self, now: Moment) -> Sequence[Draft]:
        """Those that last, when nobody looks any more."""
        return self._follow({}, now)

    def of(self, kind: Kind, name: str) -> HeldStatus | None:
        """What holds this one back and since when, as JSON values; None if nothing does."""
        one = self._current.get((kind, name))
        if one is None:
            return None
        return {"by": one.cause.by, "since": iso(one.since.at), "or_earlier": one.is_older}

    def _follow(self, held: Mapping[Delayed, DelayCause], now: Moment) -> Sequence[Draft]:
        ended = {what: one for what, one in self._current.items() if held.get(what) != one.cause}
        for what in ended:
            del self._current[what]
        for what, cause in held.items():
            before = ended.get(what)
            goes_on = before is not None and is_rest(cause, before.cause)
            since, is_older = (before.since, before.is_older) if before and goes_on else (now, False)
            self._current.setdefault(what, Delay(cause, since, now, is_older=is_older))
        lasted = ((what, one, now.since(one.since)) for what, one in ended.items())
        return [_draft(what, one, us) for what, one, us in lasted if us >= LEAST_US]


def is_rest(now: DelayCause, before: DelayCause) -> bool:
    """Whether all that holds something back by now did so before, with others: dependencies of which some are up."""
    return bool(now.waits_for) and now.waits_for < before.waits_for


def _draft(what: Delayed, one: Delay, lasted: int, lasts: bool = False) -> Draft:
    kind, name = what
    return Draft(kind(held_by=one.cause.by, since=one.since.at, held_us=lasted, lasts=lasts), subject=name)


def _wrong_since(what: Delayed, curr: Snapshot) -> Moment | None:
    """Since when there is something that may be held back."""
    kind, name = what
    if kind is RestartDelayed:
        return curr.process(name).down
    condition = curr.conditions[name]
    return condition.began if condition else None


def _restarts(curr: Snapshot) -> Iterator[tuple[Delayed, DelayCause]]:
    dead = [process.name for process in curr.settings.process if curr.process(process.name).down]
    conditions = process_conditions(curr) if dead else {}
    for name in dead:
        condition = conditions[name]
        if condition.held_by:
            yield (RestartDelayed, name), DelayCause(condition.held_by, frozenset(condition.waits_for))


def _answers(curr: Snapshot, withheld: Sequence[WithheldEffect]) -> Iterator[tuple[Delayed, DelayCause]]:
    for one in sorted((held.effect for held in withheld), key=lambda one: one.action != NOTIFY):
        raised = curr.conditions[name := answered_condition(one, curr)]
        if (
            one.action == NOTIFY
            and raised
            and (raised.measures or is_told(one.key.removeprefix(PREFIX), curr))
        ):
            continue  # a reminder, or one beside what was done
        if one.survival and raised and not curr.effects.by_key(one.key):
            yield (AnswerDelayed, name), DelayCause(cause_of_hold(one, curr))
