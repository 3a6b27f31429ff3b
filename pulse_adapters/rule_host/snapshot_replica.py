"""The child's replica of the log's state and the samples, updated with what is new."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.settings.groups import PATTERN_CHECK
from pulse_core.settings.settings import Settings

_HIDDEN, _STANDS_FOR = '://***"', '://hidden"'
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
    text = to_json(told["values"]).decode().replace(_HIDDEN, _STANDS_FOR)
    settings = Settings.model_validate_json(text, context={PATTERN_CHECK: None})
    settings.__dict__["digest"] = told["digest"]
    return settings
