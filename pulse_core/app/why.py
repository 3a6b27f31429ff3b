"""Why something is as it is, and why an effect came about and what became of it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.effect_timeline import (
    EffectTimeline,
    effect_about,
    effect_called,
    effect_named,
    effect_timeline,
    last_effects,
)
from pulse_core.app.sample_words import sample_words
from pulse_core.app.state import settings_faults, snapshot, usable_settings
from pulse_core.app.subject_report import newest, subject_report
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName
from pulse_core.model.event import Event
from pulse_core.model.home_status import HomeStatus
from pulse_core.model.kinds import Effect, ProcessDied, ProcessUp
from pulse_core.model.moment import Moment, iso
from pulse_core.model.names import STOP_PROCESS, subjects_of
from pulse_core.model.text import count, count_kinds
from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Sample
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.projections.conditions import FOR
from pulse_core.projections.effects import Phase
from pulse_core.projections.incidents import PULSE
from pulse_core.settings.settings import Settings

NEWS = (
    "process-died", "process-up", "process-stopped", "process-stop-requested", "process-start-requested",
    "process-restart-requested", "restart-delayed",
)  # fmt: skip
"""What a rule may have seen of a process."""

TRIGGERS = (*NEWS, "condition-raised", "condition-cleared", "log-matched")
"""What a rule may have seen that made it wish for an effect."""

FOLLOWED = ("process-up", "process-died")
Told = dict[str, Any]


@dataclass(frozen=True)
class EffectExplanation:
    """Everything that is still known about one effect.

    process: the one it concerns, if any; seen: what made the rule wish for it, as far as the log tells; words: what each
    sample says about it; unwritten: what is known of its subject since the log takes nothing, in words; empty if it does;
    vitals_fault: why samples and ticks could not be read.
    """

    timeline: EffectTimeline
    process: str | None
    samples: Sequence[Sample]
    words: Sequence[str]
    seen: Event | None
    tick: TickRecord | None
    snapshot_kept: bool
    origin: Event | None
    followed: Event | None
    unwritten: str
    vitals_fault: str = ""

    @property
    def began(self) -> Moment:
        """The first moment in it, which all times are told relative to."""
        moments = [sample.moment for sample in self.samples]
        rows = [row for row in (self.seen, self.timeline.wish) if row]
        return min((*moments, *(row.moment for row in rows)), key=lambda moment: moment.at)

    def spelled(self) -> Told:
        """The explanation as nested JSON, in the order in which it happened; `ms` counts from its beginning."""
        return {
            "effect": self.timeline.spelled(),
            "origin": self._event(self.origin) if self.origin else None,
            "samples": [self._sample(*both) for both in zip(self.samples, self.words, strict=True)],
            "seen": self._event(self.seen) if self.seen else None,
            "tick": self._tick(self.tick) if self.tick else None,
            "wish": self._event(self.timeline.wish),
            "attempts": list(self._attempts()),
            "outcome": self._event(self.timeline.outcome) if self.timeline.outcome else None,
            "followed": self._event(self.followed) if self.followed else None,
            "missing": list(self._missing()),
        }

    def _ms(self, moment: Moment) -> float:
        return moment.since(self.began) / 1000

    def _event(self, row: Event) -> Told:
        return {**row.spelled(), "ms": self._ms(row.moment)}

    def _sample(self, sample: Sample, words: str) -> Told:
        data = sample.data.get(self.process, {}) if self.process else sample.data
        return {
            "id": sample.id,
            "key": sample.key,
            "at": iso(sample.moment.at),
            "words": words,
            "data": data,
            "ms": self._ms(sample.moment),
        }

    def _tick(self, tick: TickRecord) -> Told:
        return {
            "number": tick.tick,
            "at": iso(tick.moment.at),
            "ms": self._ms(tick.moment),
            "woken_by": tick.woken_by,
            "took_ms": tick.took_us / 1000,
            "seq": tick.head.seq,
            "layers": [asdict(layer) for layer in tick.layers],
            "snapshot": tick.snapshot,
            "snapshot_kept": self.snapshot_kept,
        }

    def _attempts(self) -> Iterator[Told]:
        """Each attempt from its beginning to its end; one that ended with its daemon has none."""
        begun: Event | None = None
        for row, phase in self.timeline.steps:
            if phase is Phase.EXECUTING:
                if begun:
                    yield self._attempt(begun, None)
                begun = row
            elif begun:
                yield self._attempt(begun, row)
                begun = None
        if begun:
            yield self._attempt(begun, None)

    def _attempt(self, begun: Event, ended: Event | None) -> Told:
        start = begun.moment
        took = ended.moment.since(start) / 1000 if ended else None
        return {"ms": self._ms(start), "took_ms": took, "end": self._event(ended) if ended else None}

    def _missing(self) -> Iterator[str]:
        """What is not there any more, or not yet."""
        tick, wanted = self.timeline.data.get("tick"), self.timeline.data.get("samples", ())
        gone = len(wanted) - len(self.samples)
        if gone > 0:
            yield f"{gone} of its {count(len(wanted), 'sample')}: not written yet, or vitals.db was trimmed or deleted"
        if tick is not None and self.tick is None:
            yield f"the record of tick {tick}: not written yet, or vitals.db was trimmed or deleted"
        if self.tick and self.tick.snapshot and not self.snapshot_kept:
            yield f"the snapshot of tick {tick}: its object was deleted"
        if self.vitals_fault:
            yield self.vitals_fault
        if self.unwritten:
            yield self.unwritten


def _unwritten(status: HomeStatus | None, names: Collection[str]) -> str:
    """What the daemon knows of these processes and conditions that the log does not have, in words; empty if it has all."""
    held = status["log"].get("held", {}) if status else {}
    if not status or not held:
        return ""
    told = [
        f"{one['name']} is {one['state']}: {one['why']}"
        for one in status["processes"]
        if one["name"] in names
    ]
    told += [
        f"{one['name']} stands: {one['evidence']}" for one in status["conditions"] if one["name"] in names
    ]
    newest = f"; by now {'; '.join(told)}" if told else ""
    return f"the log can't be written; held in memory: {count_kinds(held)}{newest}"


NOTHING: Told = {
    "effect": None, "origin": None, "samples": [], "seen": None, "tick": None, "wish": None, "attempts": [],
    "outcome": None, "followed": None, "missing": [],
}  # fmt: skip
"""What is told of no effect."""


@dataclass(frozen=True)
class Explanation:
    """How a process, a condition, a silence or Pulse itself is now, if one was asked for; and the last effect about it."""

    about: Told | None
    effect: EffectExplanation | None

    def spelled(self) -> Told:
        """Both as JSON values."""
        return {"about": self.about, **(self.effect.spelled() if self.effect else NOTHING)}


def why(home: HomeContext, name: str | None) -> Explanation:
    """What this name means: an effect by its id or key, a process, a condition, a silence or `pulse`, in this order, else
    the effect whose id begins or ends so; without a name, the last effect."""
    status: HomeStatus | None = None
    with suppress(PulseError):  # a daemon that does not answer tells nothing
        status = home.daemon.status()
    with home.events() as log:
        try:
            about, wish = _meant(home, log, name, status)
        except PulseError as error:
            if words := _unwritten(status, (name or "",)):
                raise PulseError(f"{error}; {words}") from error
            if name and (faults := settings_faults(home)):
                words = f"the settings can't be read: {faults[0]}"
                raise PulseError(f"nothing is known of {name!r}; {words}") from error
            raise
        return Explanation(about, _effect(home, log, wish, status) if wish else None)


def _meant(
    home: HomeContext, log: EventReader, name: str | None, status: HomeStatus | None
) -> tuple[Told | None, Event | None]:
    """How what is named is now, if it is no effect, and the effect to explain."""
    if name is None:
        if last := last_effects(log, 1):
            return None, last[0]
        raise PulseError("there has been no effect yet; Pulse had nothing to do")
    if wish := effect_named(log, name):
        return None, wish
    if about := subject_report(home, log, name, status):
        wished = effect_about(log, about["name"])
        is_backing_off = about["state"] in ("backing-off", "flapping")
        is_held = (about.get("held_by") or about["state"] == "waiting") and not is_backing_off
        if wished and is_held and (died := newest(log, about["name"], (ProcessDied.kind,))):
            # What was done about an earlier death explains nothing.
            wished = wished if wished.seq > died.seq else None
        return about, wished
    return None, effect_about(log, name) or effect_called(log, name, partial(_known_names, home))


def _known_names(home: HomeContext) -> Sequence[str]:
    """The guarded processes, and the conditions that stand."""
    curr = snapshot(home, None).snapshot
    return [*(process.name for process in curr.settings.process), *curr.conditions.raised]


def _effect(home: HomeContext, log: EventReader, wish: Event, status: HomeStatus | None) -> EffectExplanation:
    one = effect_timeline(log, wish)
    params = one.data.get("params", {})
    named = params.get("process")
    process = (
        named if isinstance(named, str) else None
    )  # an engine's own action may mean something else by it
    with home.vitals() as vitals:
        number = one.data.get("tick")
        tick = vitals.tick(number) if number is not None else None
        kept = bool(tick and tick.snapshot and home.objects().exists(tick.snapshot))
        samples = vitals.samples(list(one.data.get("samples", ())))
        fault = vitals.fault
    abouts = tuple(_abouts(wish.subject, str(params.get(FOR, "")), process))
    settings = usable_settings(home) if samples else Settings()
    are_of_then = tick is None or tick.settings == settings.digest
    words = [sample_words(sample, abouts, settings, are_of_then) for sample in samples]
    origin = _origin(log, wish)
    # What a rule of the user has seen can't be guessed: it may go by anything.
    is_guessable = wish.actor == PULSE and not one.data.get("commit")
    news = (newest(log, about, TRIGGERS, before=wish.seq) for about in dict.fromkeys(abouts) if is_guessable)
    seen = max(filter(None, news), key=lambda row: row.seq, default=None)
    if origin and origin.kind != Effect.kind:  # it is known
        seen = origin
    after = _followed(log, one, process) if process else None
    unwritten = _unwritten(status, abouts)
    return EffectExplanation(one, process, samples, words, seen, tick, kept, origin, after, unwritten, fault)


def _followed(log: EventReader, one: EffectTimeline, process: str) -> Event | None:
    """What was first seen of the process after the effect; that may be seen before it is acknowledged.

    Of a stop, that is its end: who is up again later has been started since.
    """
    if not one.outcome:
        return None
    is_stop = one.data.get("action") == STOP_PROCESS
    begins = [row.seq for row, phase in one.steps if phase is Phase.EXECUTING] or [one.outcome.seq]
    begun = begins[0] if is_stop else begins[-1]  # what an attempt began to stop may end between two of them
    expected = ProcessDied if is_stop else ProcessUp
    seen = _first(log, process, (expected.kind,), begun)
    if seen and seen.seq < one.outcome.seq:
        return seen
    later = _first(log, process, FOLLOWED, one.outcome.seq)
    return None if is_stop and later and later.kind == ProcessUp.kind else later


def _first(log: EventReader, process: str, kinds: Sequence[str], since: int) -> Event | None:
    """The first event of these kinds about the process after this row."""
    return next(log.events(EventQuery(subject=process, kinds=kinds, since_seq=since), limit=1), None)


def _origin(log: EventReader, wish: Event) -> Event | None:
    """The event that its cause names; None if there is none: a rule may name anything."""
    with suppress(UnknownName, Ambiguous):
        if wish.cause and (row := log.event(wish.cause)).id == wish.cause:
            return row
    return None


def _abouts(key: str, condition: str, process: str | None) -> Iterator[str]:
    """What an effect may be about, the likeliest first: what its params name, and what its key ends with."""
    yield from filter(None, (condition, process))
    yield from subjects_of(key)
    yield from key.split(":")[1:2]
