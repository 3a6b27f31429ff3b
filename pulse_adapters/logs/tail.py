"""The log reader's process: `python -m pulse_adapters.logs.tail`. It may be killed: the daemon keeps the positions.

Its first request has the logs to follow and their positions. It sends a source's matches with its position
(`{"source", "place", "hits": [[rule, [line…], count]…]}`), errors (`{"error": [source, message]}`), and progress
(`{"sources", "places", "behind", "polled", "dropped"}`). The other requests tell of which sources matches were recorded
(`{"recorded": [source…]}`, one for each message): only so many of a source are on their way, and nobody's lines wait behind
those of a louder one.
"""

import json
import os
import resource
import select
import signal
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, Protocol

from pulse_adapters.logs.followed_files import FollowedFiles
from pulse_adapters.logs.journal import JournalUnit
from pulse_adapters.logs.line_filter import (
    LinePattern,
    first_lines,
    matches_by_rule,
    pattern_from_json,
    printable_line,
)
from pulse_adapters.logs.open_file import CHUNK
from pulse_adapters.workers import child_side
from pulse_adapters.workers.descriptors import REQUESTS
from pulse_adapters.workers.framing import LARGEST_REQUEST, Frames
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
UNRECORDED, ALL_UNRECORDED = 1_000, 6_000
"""What may be sent of one source, and of all, before it is recorded: lines at their cost, and one for each message. With
more of all under way, each source has one message. Of one it is three times what the daemon announces at once, or it would
have none left to hurry for when that is recorded. No message is as large: behind one that is, none would come that has it
recorded."""

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
        return max(0, self.limit - self._sum)

    def take(self, lines: int, now: float) -> int:
        """How many of these lines may be sent now; they are counted as sent."""
        granted = min(lines, self.room(now))
        if granted:
            self._spent.append((now, granted))
            self._sum += granted
        return granted


class SharedRateLimit:
    """A rate limit of several sources: half of it in equal shares, one for each group of them, and of that one for each of
    the group; the rest for whoever is first."""

    def __init__(self, limit: int) -> None:
        self.limit, self._common = limit, RateLimit(limit)
        self._own: dict[str, RateLimit] = {}

    def share_among(self, groups: Mapping[str, tuple[int, ...]]) -> None:
        """Have these sources and no others share it, each with its group."""
        self._own = {name: self._own.get(name) or RateLimit(0) for name in groups}
        sizes = Counter(groups.values())
        for name, own in self._own.items():
            own.limit = self.limit // 2 // len(sizes) // sizes[groups[name]]
        self._common.limit = self.limit - sum(own.limit for own in self._own.values())

    def room(self, name: str, now: float) -> int:
        """How much this source may take now."""
        own = self._own.get(name)
        return self._common.room(now) + (own.room(now) if own else 0)

    def take(self, name: str, number: int, now: float) -> None:
        """Take so much, for which there is room: of the source's own share first."""
        own = self._own.get(name)
        self._common.take(number - (own.take(number, now) if own else 0), now)


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
        self._together = [SharedRateLimit(TOGETHER * rule.limit) for rule in self.rules]
        self._cost = SharedRateLimit(COST)
        self._unrecorded: dict[str, deque[int]] = {}
        self._on_way = 0
        self._sent = 0.0
        self._counted: dict[str, float] = {}

    def add(self, source: OutboxSource, block: bytes, now: float) -> None:
        """Filter the next lines of a source; of more than twice LINES that match, the others are only counted."""
        self._add(source, self._matches(source, block), now, most=2 * LINES)

    def add_part(self, source: OutboxSource, block: bytes, now: float) -> int:
        """Filter so many of the next lines that the next message has no more than LINES; returns how many bytes."""
        found, room = self._matches(source, block), LINES - self._unsent(source)
        if sum(min(len(lines), self._room(source, number, now)) for number, lines in found.items()) > room:
            block = first_lines(block, max(1, room // len(source.rules)))
            found = self._matches(source, block)
        self._add(source, found, now, most=len(block) * len(found))
        return len(block)

    def is_full(self, source: OutboxSource) -> bool:
        """Whether the next message of this source has as many lines as it may have."""
        return self._unsent(source) >= LINES

    def _unsent(self, source: OutboxSource) -> int:
        _, hits = self._pending.get(source.name, (source, {}))
        return sum(len(to_send) for to_send, _ in hits.values())

    def _matches(self, source: OutboxSource, block: bytes) -> dict[int, list[bytes]]:
        return matches_by_rule({number: self.rules[number] for number in source.rules}, block)

    def _meter(self, source: OutboxSource, number: int) -> RateLimit:
        return self._meters.setdefault((source.name, number), RateLimit(self.rules[number].limit))

    def _room(self, source: OutboxSource, number: int, now: float) -> int:
        shared = (self._together[number], self._cost)
        return min(self._meter(source, number).room(now), *(one.room(source.name, now) for one in shared))

    def _add(self, source: OutboxSource, found: Mapping[int, Sequence[bytes]], now: float, most: int) -> None:
        self.moved[source.name] = source
        for number, lines in found.items():
            _, hits = self._pending.setdefault(source.name, (source, {}))
            to_send, count = hits.get(number, ([], 0))
            room = min(self._room(source, number, now), max(0, most))
            granted = self._affordable(source, lines[:room], now)
            most -= len(granted)
            self._meter(source, number).take(len(granted), now)
            self._together[number].take(source.name, len(granted), now)
            hits[number] = [*to_send, *granted], count + len(lines)

    def _affordable(self, source: OutboxSource, lines: Sequence[bytes], now: float) -> list[str]:
        """The first of these lines: those for which there is room in what all logs together may cost."""
        texts = [printable_line(line) for line in lines]
        costs = list(accumulate(map(line_cost, texts), initial=0))
        affordable = bisect_right(costs, self._cost.room(source.name, now)) - 1
        self._cost.take(source.name, costs[affordable], now)
        return texts[:affordable]

    def flush(self, now: float) -> float | None:
        """Send what is due; returns the seconds until the next is, None if nothing waits but for a record."""
        waits = []
        count_every = max(COUNTED_EVERY, len(self._pending) / COUNTS_PER_SECOND)
        for name, (source, hits) in tuple(self._pending.items()):
            if self._is_ahead(name):
                continue
            counted = self._counted.get(name, now - count_every)
            has_lines = any(to_send for to_send, _ in hits.values())
            wait = max(self._sent + GAP, counted + count_every if not has_lines else 0.0) - now
            if wait > 0:
                waits.append(wait)
                continue
            found = [[rule, to_send, count] for rule, (to_send, count) in hits.items()]
            self.send({"source": name, "place": source.place(), "hits": found})
            cost = 1 + sum(line_cost(line) for to_send, _ in hits.values() for line in to_send)
            self._unrecorded.setdefault(name, deque()).append(cost)
            self._on_way += cost
            self._sent = now
            if not has_lines:
                self._counted[name] = now
            del self._pending[name]
            self.moved.pop(name, None)
        return min(waits, default=None)

    def _is_ahead(self, name: str) -> bool:
        """Whether enough of this source is sent, and not recorded yet."""
        own = sum(self._unrecorded.get(name, ()))
        return own >= UNRECORDED or (own > 0 and self._on_way >= ALL_UNRECORDED)

    def recorded(self, names: Iterable[str]) -> None:
        """Take note that the first message of each of these sources is recorded, of those that are not yet."""
        for name in names:
            if costs := self._unrecorded.get(name):  # else the one who read before sent it
                self._on_way -= costs.popleft()
            if not costs:
                self._unrecorded.pop(name, None)

    def places(self) -> dict[str, Any]:
        """The positions of sources that advanced and have nothing pending: no position may run ahead of its lines."""
        moved = {name: one for name, one in self.moved.items() if name not in self._pending}
        for name in moved:
            del self.moved[name]
        return {name: source.place() for name, source in moved.items()}

    def share_among(self, sources: Mapping[str, OutboxSource]) -> None:
        """Have these sources share what may be sent in a minute, and forget all others."""
        self._meters = {key: meter for key, meter in self._meters.items() if key[0] in sources}
        self._counted = {name: when for name, when in self._counted.items() if name in sources}
        # By rules: one of a thousand files would else leave one of a single file a thousandth.
        groups = {name: source.rules for name, source in sources.items()}
        self._cost.share_among(groups)
        for number, limit in enumerate(self._together):
            limit.share_among({name: (number,) for name, rules in groups.items() if number in rules})


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
        self._share()
        # Said with the first progress: who takes over before a line was read must know where this one began.
        self.outbox.moved.update(self.files.trails)
        self._requests = Frames(LARGEST_REQUEST)
        self._poll = select.poll()
        self._poll.register(REQUESTS, select.POLLIN)
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
            ready = self._poll.poll(0 if most else self._pause() * 1000)
            if any(file == REQUESTS for file, _ in ready):
                self._take_requests()

    def _take_requests(self) -> None:
        if not (raw := child_side.receive_bytes()):
            raise SystemExit
        for body in self._requests.take(raw):
            self.outbox.recorded(json.loads(body)["recorded"])

    def _share(self) -> None:
        self.outbox.share_among({**self.files.trails, **{unit.name: unit for unit in self.units}})

    def _pause(self) -> float:
        """Seconds until something is due by itself."""
        now = time.monotonic()
        waiting = self.outbox.flush(now)
        unread: list[OutboxSource] = [
            *self.files.dirty.values(),
            *(one for one in self.units if one.has_more),
        ]
        if not all(map(self.outbox.is_full, unread)):
            return 0.0
        for unit in self.units:
            if unit.file is not None:
                self._listen(unit.file, not self.outbox.is_full(unit))
        dues = [self._scan_due, self._looked + self._look_every(), self._told + PROGRESS]
        dues += [unit.due for unit in self.units if unit.file is None]
        return max(0.0, min(dues) - now if waiting is None else min(min(dues) - now, waiting))

    def _listen(self, file: int, is_due: bool) -> None:
        """Wake when there is something to read in this file, or no longer."""
        if is_due:
            self._poll.register(file, select.POLLIN)
            return
        with suppress(KeyError):
            self._poll.unregister(file)

    def _look_every(self) -> float:
        return POLLED if self.files.watches.polled else LOOK

    def _turn(self) -> int:
        """Scan, read a block of each source that has data, and send the matches; returns the longest read, in bytes."""
        now = time.monotonic()
        if self.files.process_events():
            self._scan_due = min(self._scan_due, self._looked + SETTLE)
        if now >= self._scan_due:
            self.files.scan()
            self._share()
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
            if not self.outbox.is_full(trail) and (block := self.files.take(trail, now)):
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
                if now >= unit.due and (file := unit.start()) is not None:
                    self._listen(file, is_due=True)
                    self.outbox.moved[unit.name] = unit
                continue
            file, dropped = unit.file, unit.dropped
            while not self.outbox.is_full(unit) and (block := unit.read()):
                self.outbox.add(unit, block, now)
                most = max(most, len(block))
                if not unit.has_more:
                    break
            if unit.file is None:
                self._listen(file, is_due=False)
            if unit.dropped > dropped:
                self._told = -PROGRESS
        return most

    def _progress(self, now: float) -> None:
        """Send that the reader lives, its positions, and what it could not do."""
        self._told = now
        names = [*self.files.trails, *(unit.name for unit in self.units)]
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
