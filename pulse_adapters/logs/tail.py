"""The log reader's process: `python -m pulse_adapters.logs.tail`. It may be killed: the daemon keeps the positions.

Its one request has the logs to follow and their positions. It sends a source's matches with its position
(`{"source", "place", "hits": [[rule, [line…], count]…]}`), errors (`{"error": [source, message]}`), and progress
(`{"sources", "places", "behind", "polled", "dropped"}`).
"""

import os
import resource
import select
import signal
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

from pulse_adapters.logs.followed_files import FollowedFiles
from pulse_adapters.logs.journal import JournalUnit
from pulse_adapters.logs.line_filter import (
    LinePattern,
    first_lines,
    matching_lines,
    pattern_from_json,
    printable_line,
)
from pulse_adapters.logs.open_file import CHUNK
from pulse_adapters.workers import child_side
from pulse_adapters.workers.syscalls import prctl
from pulse_core.ports.logs import line_cost

MINUTE = 60.0
GAP = 0.02
"""Seconds between two messages: each wakes the daemon."""
COUNTED_EVERY = 10.0
"""Seconds between two messages of a source that only count, while few others wait."""
COUNTS_PER_SECOND = 10
"""Messages that only count, of all sources together."""
TOGETHER = 5
"""How many times the lines of one source are sent of all sources of a rule together."""
LINES = 50
"""Lines of a file that one message has, of all rules together."""
COST = 20_000
"""What the lines of all logs may cost in a minute: less than the daemon records in that time, or it would fall behind."""

Send = Callable[[Mapping[str, Any]], None]


class RateLimit:
    """Grants up to `limit` lines in any sixty seconds; times are in seconds and never go back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._spent: deque[tuple[float, int]] = deque()
        self._sum = 0

    def room(self, now: float) -> int:
        """How many lines may be sent now."""
        while self._spent and now - self._spent[0][0] >= MINUTE:
            self._sum -= self._spent.popleft()[1]
        return self.limit - self._sum

    def take(self, lines: int, now: float) -> int:
        """How many of these lines may be sent now; they are counted as sent."""
        granted = min(lines, self.room(now))
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
        self._together = [RateLimit(TOGETHER * rule.limit) for rule in self.rules]
        self._cost = RateLimit(COST)
        self._sent = 0.0
        self._counted: dict[str, float] = {}

    def add(self, source: OutboxSource, block: bytes, now: float) -> None:
        """Filter the next lines of a source."""
        self._add(source, self._matches(source, block), now)

    def add_part(self, source: OutboxSource, block: bytes, now: float) -> int:
        """Filter so many of the next lines that the next message has no more than LINES; returns how many bytes."""
        found, room = self._matches(source, block), LINES - self._unsent(source)
        if sum(min(len(lines), self._room(source, number, now)) for number, lines in found.items()) > room:
            block = first_lines(block, max(1, room // len(source.rules)))
            found = self._matches(source, block)
        self._add(source, found, now)
        return len(block)

    def is_full(self, source: OutboxSource) -> bool:
        """Whether the next message of this source has as many lines as it may have."""
        return self._unsent(source) >= LINES

    def _unsent(self, source: OutboxSource) -> int:
        _, hits = self._pending.get(source.name, (source, {}))
        return sum(len(to_send) for to_send, _ in hits.values())

    def _matches(self, source: OutboxSource, block: bytes) -> dict[int, list[bytes]]:
        found = {number: matching_lines(self.rules[number], block) for number in source.rules}
        return {number: lines for number, lines in found.items() if lines}

    def _meter(self, source: OutboxSource, number: int) -> RateLimit:
        return self._meters.setdefault((source.name, number), RateLimit(self.rules[number].limit))

    def _room(self, source: OutboxSource, number: int, now: float) -> int:
        limits = (self._meter(source, number), self._together[number], self._cost)
        return min(limit.room(now) for limit in limits)

    def _add(self, source: OutboxSource, found: Mapping[int, Sequence[bytes]], now: float) -> None:
        self.moved[source.name] = source
        for number, lines in found.items():
            _, hits = self._pending.setdefault(source.name, (source, {}))
            to_send, count = hits.get(number, ([], 0))
            granted = self._affordable(lines[: self._room(source, number, now)], now)
            self._meter(source, number).take(len(granted), now)
            self._together[number].take(len(granted), now)
            hits[number] = [*to_send, *granted], count + len(lines)

    def _affordable(self, lines: Sequence[bytes], now: float) -> list[str]:
        """The first of these lines: those for which there is room in what all logs together may cost."""
        texts = [printable_line(line) for line in lines]
        costs = list(accumulate(map(line_cost, texts), initial=0))
        affordable = bisect_right(costs, self._cost.room(now)) - 1
        self._cost.take(costs[affordable], now)
        return texts[:affordable]

    def flush(self, now: float) -> float | None:
        """Send what is due; returns the seconds until the next is, None if nothing waits."""
        waits = []
        count_every = max(COUNTED_EVERY, len(self._pending) / COUNTS_PER_SECOND)
        for name, (source, hits) in tuple(self._pending.items()):
            counted = self._counted.get(name, now - count_every)
            has_lines = any(to_send for to_send, _ in hits.values())
            wait = max(self._sent + GAP, counted + count_every if not has_lines else 0.0) - now
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


BREATH = 0.005
"""Seconds between two reads while lines come: each read costs the same, be it one line or a thousand."""
SETTLE = 0.02
"""Seconds between two scans of directories."""
POLLED, LOOK = 0.25, 5.0
"""Seconds between two checks of files that can't be watched, and of all files."""
IN_DOUBT = 1.0
"""Seconds until a file that may be a copy or a log of its own is checked again, even if it has not grown."""
PROGRESS = 15.0
"""Seconds between two progress messages, with the positions that moved."""
_OPEN_FILES = 4_096
_DEATH_SIGNAL = 1


class TailReader:
    """Follows the logs of its request; ends with the process."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        logs, places = task["logs"], task["places"]
        self.outbox = Outbox([pattern_from_json(log) for log in logs], child_side.send)
        self._said: set[tuple[str, str]] = set()
        patterns = {number: log["path"] for number, log in enumerate(logs) if log["path"]}
        self.files = FollowedFiles(patterns, task["patterns"], places, self.tell)
        # Each unit is followed once, however many rules search it.
        rules: dict[tuple[str, bool], list[int]] = {}
        for number, log in enumerate(logs):
            if log["unit"]:
                rules.setdefault((log["unit"], log["user"]), []).append(number)
        program = task["journalctl"]
        self.units = [JournalUnit(*unit, numbers, self.tell, program) for unit, numbers in rules.items()]
        for one in self.units:
            one.restore(places.get(one.name, {}))
        # Said with the first progress: who takes over before a line was read must know where this one began.
        self.outbox.moved.update(self.files.trails)
        self._poll = select.poll()
        if self.files.watches.fileno is not None:
            self._poll.register(self.files.watches.fileno, select.POLLIN)
        self._looked = time.monotonic()
        self._scan_due = self._looked + (IN_DOUBT if self.files.in_doubt else LOOK)
        self._told = -PROGRESS

    def tell(self, whose: str, message: str) -> None:
        """Report a problem to the user, once."""
        if len(self._said) >= 1_000:
            self._said.clear()
        if (whose, message) not in self._said:
            self._said.add((whose, message))
            child_side.send({"error": [whose, message]})

    def run(self) -> None:
        """Read for ever."""
        while True:
            most = self._turn()
            if most and most < CHUNK // 2:
                time.sleep(BREATH)
            self._poll.poll(0 if most else self._pause() * 1000)

    def _pause(self) -> float:
        """Seconds until something is due by itself."""
        now = time.monotonic()
        waiting = self.outbox.flush(now)
        dues = [self._scan_due, self._looked + self._look_every(), self._told + PROGRESS]
        dues += [unit.due for unit in self.units if unit.file is None]
        return max(0.0, min(dues) - now if waiting is None else min(min(dues) - now, waiting))

    def _look_every(self) -> float:
        return POLLED if self.files.watches.polled else LOOK

    def _turn(self) -> int:
        """Scan, read a block of each source that has data, and send the matches; returns the longest read, in bytes."""
        now = time.monotonic()
        if self.files.process_events():
            self._scan_due = min(self._scan_due, self._looked + SETTLE)
        if now >= self._scan_due:
            self.files.scan()
            self._looked = now
            rest = max(LOOK, 200 * (time.monotonic() - now))
            self._scan_due = now + (IN_DOUBT if self.files.in_doubt else rest)
        elif now - self._looked >= self._look_every():
            self._looked = now
            self.files.look()
            for unit in self.units:
                unit.report_errors()
            if self.files.watches.polled:
                self._scan_due = min(self._scan_due, now + 4 * POLLED)
        most = self._read_units(now)
        for trail in tuple(self.files.dirty.values()):
            if self.outbox.is_full(trail):
                most = max(most, 1)
            elif block := self.files.take(trail, now):
                used = self.outbox.add_part(trail, block, now)
                trail.give_back(block, used)
                most = max(most, used)
        self.outbox.flush(now)
        if now - self._told >= PROGRESS:
            self._progress(now)
        return most

    def _read_units(self, now: float) -> int:
        most = 0
        for unit in self.units:
            if unit.file is None:
                if now >= unit.due:
                    self._poll.register(unit.start(), select.POLLIN)
                    self.outbox.moved[unit.name] = unit
                continue
            file, dropped = unit.file, unit.dropped
            if block := unit.read():
                self.outbox.add(unit, block, now)
                most = max(most, len(block))
            if unit.file is None:
                self._poll.unregister(file)
            if unit.dropped > dropped:
                self._told = -PROGRESS
        return most

    def _progress(self, now: float) -> None:
        """Send that the reader lives, its positions, and what it could not do."""
        self._told = now
        names = [*self.files.trails, *(unit.name for unit in self.units)]
        self.outbox.forget(set(names))
        child_side.send(
            {
                "sources": names,
                "places": self.outbox.places(),
                "behind": self.files.behind(),
                "polled": self.files.watches.polled,
                "dropped": {unit.name: unit.dropped for unit in self.units if unit.dropped},
            }
        )


def main() -> None:
    """Follow until the parent ends."""
    child_side.begin()
    os.chdir("/")
    prctl(_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    TailReader(next(child_side.requests())).run()


if __name__ == "__main__":
    main()
