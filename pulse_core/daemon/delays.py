"""What holds back the restarts of dead processes and the answers to conditions, and for how long, as each tick finds it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pulse_core.app.compute_status import due_restarts, holder_of, process_condition
from pulse_core.model.event import Draft
from pulse_core.model.home_status import HeldStatus
from pulse_core.model.kinds import AnswerDelayed, RestartDelayed
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.verdict import WithheldEffect
from pulse_core.projections.conditions import FOR
from pulse_core.projections.state import Snapshot
from pulse_core.rules.survival.process_watchdog import newest_look

LEAST_US = US_PER_SECOND // 10
"""Shorter ones are not recorded."""
LASTING_US = US_PER_SECOND
"""One that has lasted for so long is recorded while it lasts, too: the daemon may be killed before it ends."""

Held = tuple[type[RestartDelayed] | type[AnswerDelayed], str]
"""The kind that tells of it, and the process or condition."""


class Standing(NamedTuple):
    """What holds something back since then; is_told: that it does is recorded."""

    by: str
    since: Moment
    is_told: bool = False


class Delays:
    """Follows what holds back each of these from tick to tick; one that another takes over from, or that ends, is told."""

    def __init__(self) -> None:
        self._standing: dict[Held, Standing] = {}

    def after(self, curr: Snapshot, withheld: Sequence[WithheldEffect]) -> Sequence[Draft]:
        """The delays that have ended by this tick; withheld: what survival held back in it."""
        return self._go_on({**dict(_answers(curr, withheld)), **dict(_restarts(curr))}, curr.now)

    @property
    def is_untold(self) -> bool:
        """Whether one lasts of which nothing is recorded yet."""
        return not all(one.is_told for one in self._standing.values())

    def lasting(self, now: Moment) -> Sequence[Draft]:
        """Those that have lasted for a second and of which nothing is recorded yet."""
        drafts = []
        for (kind, name), one in self._standing.items():
            if not one.is_told and (lasted := now.since(one.since)) >= LASTING_US:
                self._standing[kind, name] = one._replace(is_told=True)
                delayed = kind(held_by=one.by, since=one.since.at, held_us=lasted, lasts=True)
                drafts.append(Draft(delayed, subject=name))
        return drafts

    def end(self, now: Moment) -> Sequence[Draft]:
        """Those that last, when nobody looks any more."""
        return self._go_on({}, now)

    def of(self, kind: type[RestartDelayed] | type[AnswerDelayed], name: str) -> HeldStatus | None:
        """What holds this one back and since when, as JSON values; None if nothing does."""
        one = self._standing.get((kind, name))
        return {"by": one.by, "since": iso(one.since.at)} if one else None

    def _go_on(self, held: Mapping[Held, str], now: Moment) -> Sequence[Draft]:
        drafts = []
        for (kind, name), (by, since, _) in list(self._standing.items()):
            if held.get((kind, name)) == by:
                continue
            del self._standing[kind, name]
            if (lasted := now.since(since)) >= LEAST_US:
                delayed = kind(held_by=by, since=since.at, held_us=lasted)
                drafts.append(Draft(delayed, subject=name))
        for one, by in held.items():
            self._standing.setdefault(one, Standing(by, now))
        return drafts


def _restarts(curr: Snapshot) -> Iterator[tuple[Held, str]]:
    dead = [process for process in curr.settings.process if curr.process(process.name).down]
    due = due_restarts(curr, {one.name: newest_look(one.name, curr) for one in dead}) if dead else None
    for process in dead:
        if by := process_condition(process, curr, newest_look(process.name, curr), due).held_by:
            yield (RestartDelayed, process.name), by


def _answers(curr: Snapshot, withheld: Sequence[WithheldEffect]) -> Iterator[tuple[Held, str]]:
    for one in (held.effect for held in withheld):
        name = str(one.params.get(FOR, ""))
        if one.survival and name in curr.conditions.raised and not curr.effects.by_key(one.key):
            yield (AnswerDelayed, name), holder_of(one, curr)
