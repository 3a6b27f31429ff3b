"""Batches and sends lines to the daemon: lines read together are sent together; of a storm mostly the count."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pulse_adapters.logs.line_filter import LinePattern, matching_lines, printable_line

MINUTE = 60.0
GAP = 0.02
"""Seconds between two messages with lines: each wakes the daemon."""
COUNTED_EVERY = 10.0
"""Seconds between two messages that only count."""

Send = Callable[[Mapping[str, Any]], None]


class RateLimit:
    """Grants up to `limit` lines in any sixty seconds; times are in seconds and never go back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._spent: deque[tuple[float, int]] = deque()
        self._sum = 0

    def take(self, lines: int, now: float) -> int:
        """How many of these lines may be sent now."""
        while self._spent and now - self._spent[0][0] >= MINUTE:
            self._sum -= self._spent.popleft()[1]
        granted = min(lines, self.limit - self._sum)
        if granted:
            self._spent.append((now, granted))
            self._sum += granted
        return granted


class OutboxSource(Protocol):
    """A source of lines. rules: the numbers of the rules for its lines; place: the reader's position, as JSON."""

    name: str
    rules: tuple[int, ...]

    def place(self) -> dict[str, Any]: ...


class Outbox:
    """Filters blocks of lines and sends the matches; times are in seconds."""

    def __init__(self, rules: Sequence[LinePattern], send: Send) -> None:
        self.rules, self.send = tuple(rules), send
        self.moved: dict[str, OutboxSource] = {}
        """Sources that went on since their place was last sent."""
        self._pending: dict[str, tuple[OutboxSource, dict[int, tuple[list[str], int]]]] = {}
        """Of each source with unsent lines: for each rule those to send, and how many matched."""
        self._meters: dict[tuple[str, int], RateLimit] = {}
        self._sent = 0.0
        self._counted: dict[str, float] = {}

    def add(self, source: OutboxSource, block: bytes, now: float) -> None:
        """Filter the next lines of a source."""
        self.moved[source.name] = source
        for number in source.rules:
            rule = self.rules[number]
            if lines := matching_lines(rule, block):
                meter = self._meters.setdefault((source.name, number), RateLimit(rule.limit))
                _, hits = self._pending.setdefault(source.name, (source, {}))
                to_send, count = hits.get(number, ([], 0))
                to_send.extend(map(printable_line, lines[: meter.take(len(lines), now)]))
                hits[number] = to_send, count + len(lines)

    def flush(self, now: float) -> float | None:
        """Send what is due; returns the seconds until the next is, None if nothing waits."""
        waits = []
        for name, (source, hits) in tuple(self._pending.items()):
            counted = self._counted.get(name, now - COUNTED_EVERY)
            has_lines = any(to_send for to_send, _ in hits.values())
            wait = (self._sent + GAP if has_lines else counted + COUNTED_EVERY) - now
            if wait > 0:
                waits.append(wait)
                continue
            found = [[rule, to_send, count] for rule, (to_send, count) in hits.items()]
            self.send({"source": name, "place": source.place(), "hits": found})
            self._sent = now
            if not has_lines:
                self._counted[name] = now
            del self._pending[name]
            self.moved.pop(name, None)
        return min(waits, default=None)

    def places(self) -> dict[str, Any]:
        """The positions of sources that advanced and have nothing pending: no position may run ahead of its lines."""
        moved = {name: one for name, one in self.moved.items() if name not in self._pending}
        for name in moved:
            del self.moved[name]
        return {name: source.place() for name, source in moved.items()}

    def forget(self, names: set[str]) -> None:
        """Forget the sources that are not in `names`."""
        self._meters = {key: meter for key, meter in self._meters.items() if key[0] in names}
        self._counted = {name: when for name, when in self._counted.items() if name in names}
