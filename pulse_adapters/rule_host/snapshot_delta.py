"""Encodes of a snapshot only what the child does not have yet."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.settings.settings import Settings

_NOTHING = Window()
Message = dict[str, Any]


def full_snapshot(snapshot: Snapshot) -> Message:
    """A whole snapshot as a message."""
    return {
        **_tick(snapshot),
        "projections": FOLD.dump(snapshot.state),
        "windows": _windows({}, snapshot.windows),
        "settings": _settings(snapshot.settings),
    }


class SnapshotDelta:
    """Remembers what was sent. Events are held until a snapshot contains them."""

    def __init__(self, sent: Snapshot) -> None:
        self._windows, self._digest = sent.windows, sent.settings.digest
        self._sent = _place(sent)
        self._events: list[Event] = []

    def add_events(self, events: Sequence[Event]) -> int:
        """Hold these events; returns how many are held now."""
        self._events += events
        return len(self._events)

    def events(self) -> Message:
        """Take the held events, which are sent before the next snapshot."""
        events, self._events = self._events, []
        return {"do": "feed", "events": events}

    @property
    def row(self) -> int:
        """The last row of the log that was sent."""
        return self._sent[1]

    def is_behind(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot sent last is older than this one."""
        (tick, row), (sent, known) = _place(snapshot), self._sent
        return tick > sent and row >= known

    def of(self, snapshot: Snapshot) -> Message:
        """What is new in this snapshot."""
        message = {**self.events(), **_tick(snapshot), "windows": _windows(self._windows, snapshot.windows)}
        self._windows, self._sent = snapshot.windows, _place(snapshot)
        if snapshot.settings.digest != self._digest:
            self._digest = snapshot.settings.digest
            message["settings"] = _settings(snapshot.settings)
        return message


def _place(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.tick, snapshot.state.seq + snapshot.state.provisional


def _tick(snapshot: Snapshot) -> Message:
    state = snapshot.state
    return {
        "tick": snapshot.tick,
        "now": snapshot.now,
        "seq": state.seq,
        "provisional": state.provisional,
    }


def _settings(settings: Settings) -> Message:
    return {"digest": settings.digest, "values": settings.model_dump(mode="json", by_alias=True)}


def _windows(before: Mapping[str, Window], windows: Mapping[str, Window]) -> Message:
    """The number of samples and the new ones, by key; 0 for a key that is gone."""
    news: Message = dict.fromkeys(before.keys() - windows.keys(), (0, ()))
    for key, window in windows.items():
        if window is not (old := before.get(key, _NOTHING)):
            newest = old.last.id if old.last else -1
            fresh = [_row(sample) for sample in window.samples if sample.id > newest]
            if len(window.samples) - len(fresh) > len(
                old.samples
            ):  # as after a start, when little was remembered
                fresh = [_row(sample) for sample in window.samples]
            news[key] = (len(window.samples), fresh)
    return news


def _row(sample: Sample) -> tuple[Any, ...]:
    return sample.id, sample.moment, sample.data
