"""Which events a person wants to see: kinds, a subject with all that belongs to it, a beginning, a number."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.effect_timeline import ABOUT_PROCESS, effect_called
from pulse_core.app.follow import follow
from pulse_core.model.errors import Ambiguous, UnknownName
from pulse_core.model.event import Event
from pulse_core.model.short_ids import CUT
from pulse_core.ports.readers import ALL_EVENTS, EventQuery, EventReader
from pulse_core.projections.effects import decode_plain_effect

EFFECT = "effect"


@dataclass(frozen=True)
class EventFilter:
    """What is wanted. `effects` collects the ids of the effects that belong to the subject."""

    kinds: tuple[str, ...] = ()
    subject: str | None = None
    since: EventQuery = ALL_EVENTS
    last: int | None = None
    effects: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Raises UnknownName for a kind that was never defined."""
        if self.kinds:
            from pulse_core.composition import KINDS  # slow to import, and seldom needed

            for kind in self.kinds:
                if kind not in KINDS:
                    raise UnknownName("event kind", kind, KINDS)

    @property
    def streamed(self) -> tuple[str, ...]:
        """The kinds to ask of a stream; for a subject its effects too, since they say what belongs to it."""
        return (*self.kinds, EFFECT) if self.kinds and self.subject else self.kinds

    def recorded(self, log: EventReader) -> Iterator[Event]:
        """What is in the log, oldest first."""
        wanted = self.since._replace(kinds=self.kinds)
        if self.subject is not None:
            return iter(self._about(log, self.subject))
        if self.last is None:
            return log.events(wanted)
        return reversed(list(log.events(wanted, limit=self.last, newest_first=True)))

    def concerns(self, event: Mapping[str, Any]) -> bool:
        """Whether an event that comes is wanted; remembers effects that belong to the subject."""
        if self.subject is not None and not self._belongs(event):
            return False
        return not self.kinds or event["kind"] in self.kinds

    def _belongs(self, event: Mapping[str, Any]) -> bool:
        if event["kind"] == EFFECT and self._is_ours(event["id"], event["subject"], event["data"]):
            self.effects.add(event["id"])
            return True
        return event["subject"] == self.subject or event["subject"] in self.effects

    def _is_ours(self, effect: str, key: str, data: Mapping[str, Any] | None) -> bool:
        process = (data or {}).get("params", {}).get("process")
        return self.subject in (effect, key, process) or key in self._keys()

    def _keys(self) -> Sequence[str]:
        return [key.format(self.subject) for key in ABOUT_PROCESS]

    def _about(self, log: EventReader, subject: str) -> Sequence[Event]:
        """Its own events, its effects, whatever their keys, and what became of those."""
        subjects, since = (subject, *self._keys()), self.since
        rows = {row.seq: row for one in subjects for row in log.events(EventQuery(subject=one))}
        with suppress(UnknownName, Ambiguous):
            if (own := log.event(subject)).kind == EFFECT and own.id == subject:
                rows[own.seq] = own
        of_any = (row for row in log.events(EventQuery(kinds=(EFFECT,))) if '"process"' in row.data)
        for row in (*rows.values(), *of_any):
            if row.kind == EFFECT and self._is_ours(row.id, row.subject, decode_plain_effect(row.data)):
                self.effects.add(row.id)
                rows[row.seq] = row
        for effect in self.effects:
            rows.update((row.seq, row) for row in log.events(EventQuery(subject=effect)))
        found = [
            row
            for seq, row in sorted(rows.items())
            if seq > since.since_seq
            and (since.since_at is None or row.at >= since.since_at)
            and (not self.kinds or row.kind in self.kinds)
        ]
        return found if self.last is None else found[len(found) - min(self.last, len(found)) :]


def events(home: HomeContext, wanted: EventFilter, *, and_new: bool) -> Iterator[Mapping[str, Any]]:
    """The events that are there, as JSON values, and then those that come, for ever, if they are wanted too."""
    with home.events() as log:
        if wanted.subject and wanted.subject.startswith(CUT):
            wanted = replace(wanted, subject=effect_called(log, wanted.subject).id)
        head = log.head().seq
        yield from (event.spelled() for event in wanted.recorded(log))
    if and_new:
        coming = follow(home, max(head, wanted.since.since_seq), wanted.streamed)
        yield from filter(wanted.concerns, coming)
