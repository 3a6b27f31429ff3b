"""For how long the restarts of dead processes are held back, and by what, as their status says it at each tick."""

from collections.abc import Iterator, Mapping, Sequence

from pulse_core.app.compute_status import due_restarts, process_condition
from pulse_core.model.event import Draft
from pulse_core.model.home_status import HeldStatus
from pulse_core.model.kinds import RestartDelayed
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.projections.state import Snapshot
from pulse_core.rules.survival.process_watchdog import newest_look

LEAST_US = US_PER_SECOND // 10
"""Shorter ones are not recorded."""


class RestartDelays:
    """Follows what holds back each restart from tick to tick; one that another takes over from, or that ends, is told."""

    def __init__(self) -> None:
        self._standing: dict[str, tuple[str, Moment]] = {}

    def ended(self, curr: Snapshot) -> Sequence[Draft]:
        """The delays that have ended by this tick."""
        return self._go_on(dict(_held_by(curr)), curr.now)

    def end(self, now: Moment) -> Sequence[Draft]:
        """Those that last, when nobody looks any more."""
        return self._go_on({}, now)

    def of(self, name: str) -> HeldStatus | None:
        """What holds back this process's restart and since when, as JSON values; None if nothing does."""
        by, since = self._standing.get(name, ("", None))
        return {"by": by, "since": iso(since.at)} if since else None

    def _go_on(self, held: Mapping[str, str], now: Moment) -> Sequence[Draft]:
        drafts = []
        for name, (by, since) in list(self._standing.items()):
            if held.get(name) == by:
                continue
            del self._standing[name]
            if (lasted := now.since(since)) >= LEAST_US:
                delayed = RestartDelayed(held_by=by, since=since.at, held_us=lasted)
                drafts.append(Draft(delayed, subject=name))
        for name, by in held.items():
            self._standing.setdefault(name, (by, now))
        return drafts


def _held_by(curr: Snapshot) -> Iterator[tuple[str, str]]:
    dead = [process for process in curr.settings.process if curr.process(process.name).down]
    due = due_restarts(curr, {one.name: newest_look(one.name, curr) for one in dead}) if dead else None
    for process in dead:
        if by := process_condition(process, curr, newest_look(process.name, curr), due).held_by:
            yield process.name, by
