"""Effects of the engine's rules: as a replay finds them, as the log tells them, and where two accounts differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.status import DAEMON
from pulse_core.composition import ALL_RULES, OWN_NAMES
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment, iso
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.effects import Source, source_of
from pulse_core.projections.state import Snapshot
from pulse_core.rules import compose
from pulse_core.rules.onion import run_synchronously


class WishedEffect(NamedTuple):
    """The beginning of a wish for an effect: it may have been repeated tick after tick, and counts as one."""

    key: str
    tick: int
    at: str
    rule: str
    action: str
    reason: str


class EffectDifference(NamedTuple):
    """A wish that only one of two accounts has, `old` or `new`."""

    only: str
    wish: WishedEffect


class WishTracker:
    """Finds the wishes that begin. What is wished tick after tick is one wish, until its key was settled meanwhile."""

    def __init__(self) -> None:
        self._standing: Mapping[str, Moment | None] = {}

    def begun(self, prev: Snapshot, curr: Snapshot, verdict: Verdict) -> Sequence[WishedEffect]:
        """The wishes of this verdict that begin and would be recorded if it were in force."""
        passed = allowed_by_survival(prev, curr, verdict) if verdict.effects else ()
        fresh = {effect.key: effect for effect in reversed(passed) if not curr.effects.excludes(effect)}
        before, self._standing = self._standing, {key: curr.effects.settled_at.get(key) for key in fresh}
        return [
            WishedEffect(key, curr.tick, iso(curr.now.at), one.rule, one.action, one.reason)
            for key, one in reversed(fresh.items())
            if key not in before or before[key] != self._standing[key]
        ]


def allowed_by_survival(
    prev: Snapshot, curr: Snapshot, verdict: Verdict, withheld: list[WithheldEffect] | None = None
) -> Sequence[Effect]:
    """The engine's effects that the survival rules allow; those that they hold back are appended to `withheld`."""

    async def inside(prev: Snapshot, curr: Snapshot) -> Verdict:
        return verdict

    whole = run_synchronously(compose(ALL_RULES, inside, withheld=withheld)(prev, curr))
    assert whole is not None, "survival rules await nothing but what is inside them"
    return tuple(one for one in whole.effects if not one.survival and one.rule not in OWN_NAMES)


def recorded_effects(home: HomeContext, at: int, first: int, last: int) -> Iterator[WishedEffect]:
    """The effects that the engine's rules requested in these ticks and the log recorded, later than a moment."""
    with home.events() as log:
        for row in log.events(EventQuery(since_at=at, kinds=(Effect.kind,))):
            try:
                data = json.loads(row.data) or {}  # it may be redacted
            except ValueError:  # its payload is lost
                continue
            tick, rule = data.get("tick") or 0, data.get("rule")
            if row.actor == DAEMON and first <= tick <= last and rule and source_of(row.data) is Source.RULES:
                said = (str(data.get(name, "")) for name in ("rule", "action", "reason"))
                yield WishedEffect(str(data.get("key", row.subject)), tick, iso(row.at), *said)


def differences(old: Sequence[WishedEffect], new: Sequence[WishedEffect]) -> Sequence[EffectDifference]:
    """What the new account has and the old one has not, and the other way round, by time."""
    before, after = {(one.key, one.tick) for one in old}, {(one.key, one.tick) for one in new}
    gone = [EffectDifference("old", one) for one in old if (one.key, one.tick) not in after]
    come = [EffectDifference("new", one) for one in new if (one.key, one.tick) not in before]
    return sorted((*gone, *come), key=lambda one: one.wish.tick)
