"""The child's own state: its replica of the log's state and the samples, and the authors' projections."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from pydantic_core import from_json, to_json

from pulse_adapters.rule_host.guarded_rule import Report
from pulse_adapters.rule_host.time_budget import TimeBudget
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.composition import FOLD
from pulse_core.engine.plugin import Projection
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.settings.groups import PATTERN_CHECK
from pulse_core.settings.secrets import MASKED
from pulse_core.settings.settings import Settings

Told = Mapping[str, Any]


class SnapshotReplica:
    """Makes each tick's snapshot out of the last one and what has come since."""

    def __init__(self, prev: Told) -> None:
        self._settings = _settings(prev["settings"])
        self._windows: dict[str, Window] = {}
        self._waiting: list[Event] = []
        self._sense(prev["windows"])
        self._state = FOLD.load(prev["projections"], prev["seq"], prev["provisional"])
        self.snapshot = self._taken(prev, {})

    def take(self, rows: Sequence[Sequence[Any]]) -> None:
        """Queue events; they are applied at the tick whose row covers them."""
        self._waiting += [Event(*row) for row in rows]

    def due(self, upto: int) -> list[Event]:
        """The events up to this row that are not part of the picture yet."""
        found = [event for event in self._waiting if event.seq <= upto]
        if found:
            self._waiting = [event for event in self._waiting if event.seq > upto]
        return found

    def move(self, tick: Told, events: Sequence[Event], own: Mapping[str, Any]) -> tuple[Snapshot, Snapshot]:
        """The last snapshot and the new one."""
        if "settings" in tick:
            self._settings = _settings(tick["settings"])
        self._sense(tick["windows"])
        moved = FOLD(self._state, events, tick["seq"]) if events else self._state
        self._state = replace(moved, seq=tick["seq"], provisional=tick["provisional"])
        before, self.snapshot = self.snapshot, self._taken(tick, own)
        return before, self.snapshot

    def _taken(self, tick: Told, own: Mapping[str, Any]) -> Snapshot:
        now = Moment(*tick["now"])
        return Snapshot(tick["tick"], now, self._settings, self._windows, self._state, own)

    def _sense(self, windows: Mapping[str, Any]) -> None:
        """Apply each key's new samples and its number of samples; 0 means that the key is gone."""
        if not windows:
            return
        held = dict(self._windows)
        for key, (count, rows) in windows.items():
            news = [Sample(id_, key, Moment(*moment), data) for id_, moment, data in rows]
            if count:
                held[key] = Window((*(held[key].samples if key in held else ()), *news)[-count:])
            else:
                held.pop(key, None)
        self._windows = held


def _settings(told: Told) -> Settings:
    """The settings without secrets, which stay with the daemon; the digest is that of the real ones."""
    settings = Settings.model_validate_json(to_json(told["values"]), context={PATTERN_CHECK: None, **MASKED})
    settings.__dict__["digest"] = told["digest"]
    return settings


MOST_BYTES = 256 * 1024
"""Of a value as JSON."""


class UserProjection:
    """The state of one projection. It is stopped for good when it takes too long or returns a value that is no JSON."""

    def __init__(
        self, name: str, projection: Projection, unit: int, budget: TimeBudget, places: Places
    ) -> None:
        self.name, self.projection = name, projection
        self.version = version(projection)
        self.seq, self.text = 0, to_json(projection.start)
        self.value = from_json(self.text)
        self.broken = False
        self._unit, self._budget, self._places = unit, budget, places

    def resume(self, seq: int, text: str) -> None:
        """Resume from a kept value."""
        self.seq, self.text = seq, text.encode()
        self.value = from_json(self.text)

    def take(self, events: Sequence[Event], upto: int, report: Report) -> None:
        """The value after these events; `upto`: the row that is reached with them at least."""
        kinds, seq = self.projection.kinds, self.seq
        self.seq = max(upto, events[-1].seq if events else 0, seq)
        wanted = [event for event in events if event.seq > seq and (kinds is None or event.kind in kinds)]
        if not wanted or self.broken:
            return
        outer = self._budget.enter(self._unit)
        try:
            text = to_json(self._stepped(wanted, report))
            if len(text) > MOST_BYTES:
                raise ValueError(f"its value takes {len(text):,} bytes; at most {MOST_BYTES:,} are kept")
            self.text, self.value = text, from_json(text)
        except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            self.broken = True
            words = "took too long" if self._budget.has_stopped(error) else describe_error(error)
            self._budget.hold()
            self._tell(report, error, f"{words}; it stands still from here on")
        finally:
            self._budget.back(outer)

    def _stepped(self, events: Iterable[Event], report: Report) -> Any:
        """The value after each event; an event at which the step fails is skipped, at every replay alike."""
        step, value, failed = self.projection.step, from_json(self.text), False
        for event in events:
            try:
                value = step(value, event)
            except Exception as error:
                if self._budget.has_stopped(error):  # the event is none at which it fails at every replay
                    raise
                if not failed:
                    self._tell(report, error, f"{describe_error(error)}, at event {event.id} ({event.kind})")
                failed = True
        return value

    def _tell(self, report: Report, error: BaseException, words: str) -> None:
        place = self._places.of_error(error) or self._places.of_code(self.projection.step)
        report(f"projection:{self.name}", with_place(words, place))


def version(projection: Projection) -> str:
    """A version that changes whenever the same events may give another value: author's number and hash of the code."""
    digest = hashlib.sha256(to_json(projection.start))
    digest.update(repr(sorted(projection.kinds) if projection.kinds is not None else None).encode())
    if code := getattr(projection.step, "__code__", None):
        digest.update(repr(_meaning(code)).encode())
    return f"{projection.version}-{digest.hexdigest()[:12]}"


def _meaning(code: CodeType) -> tuple[Any, ...]:
    """The meaning of code without line numbers: an added comment changes nothing."""
    constants = []
    for one in code.co_consts:
        inner = _meaning(one) if isinstance(one, CodeType) else one
        constants.append(sorted(map(repr, inner)) if isinstance(inner, frozenset) else inner)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)
