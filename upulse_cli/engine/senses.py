"""What the senses said at each recorded tick, put together from the samples that are left."""

from collections.abc import Iterator, Sequence

from pulse_core.model.tick import TickRecord
from pulse_core.model.vitals import Sample, Window


class Senses:
    """Windows that move on with the samples. before: older ones that windows still held, of senses that speak seldom."""

    def __init__(self, rows: Iterator[Sample], before: Sequence[Sample] = ()) -> None:
        self._rows = rows
        self._next = next(rows, None)
        self._windows: dict[str, Window] = {}
        for row in before:
            self._windows[row.key] = Window((row,))

    def at(self, tick: TickRecord) -> dict[str, Window]:
        """The windows that this tick saw: of the senses that it names, up to the newest samples that it names."""
        windows = self._upto(max(tick.samples, default=0))
        named = set(tick.samples)
        gone = [key for key, window in windows.items() if not window.last or window.last.id not in named]
        if gone:  # a start remembers no more than a minute, and an engine's own watchers go with their commit
            windows = self._windows = {key: one for key, one in windows.items() if key not in gone}
        return windows

    def _upto(self, id_: int) -> dict[str, Window]:
        if not (self._next and self._next.id <= id_):
            return self._windows
        moved = dict(self._windows)
        while (row := self._next) and row.id <= id_:
            moved[row.key] = moved.get(row.key, Window()).plus(row)
            self._next = next(self._rows, None)
        self._windows = moved
        return moved
