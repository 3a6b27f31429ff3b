"""What tells at once that a file of a project was changed, through inotify, while what can't be watched is found by the next
look; and the daemon's watcher of the projects that were added, by which that is recorded."""

import asyncio
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_adapters.workers import inotify
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.capability import WatcherContext
from pulse_core.guidance.events import GuidanceUnwatched, GuidanceWatched
from pulse_core.guidance.projection import GUIDANCE, Guidance
from pulse_core.guidance.protocol import FILES, FOLDER
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.vitals import Reading, Window

_NAMES = inotify.CREATE | inotify.MOVED_FROM | inotify.MOVED_TO | inotify.DELETE | inotify.ONLY_DIRECTORY
_CHANGES = _NAMES & ~inotify.CREATE | inotify.CLOSE_WRITE


class FileWatch:
    """Calls `changed` with the root in the running loop; `watch` and `keep` say of which projects, `close` ends it."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._inotify: inotify.Inotify | None = None
        self._watches: dict[str, dict[int, frozenset[str]]] = {}

    def keep(self, roots: Collection[str]) -> None:
        """Watch no others than these any more; must be called before the first one is watched."""
        if self._inotify is None and roots:
            try:
                self._inotify = inotify.Inotify()
            except OSError:
                return
            asyncio.get_running_loop().add_reader(self._inotify.fileno, self._read)
        for root in self._watches.keys() - set(roots):
            self._remove(self._watches.pop(root))

    def watch(self, root: str) -> None:
        """Watch this project; a folder that bears its name by now is watched instead of the one before.

        For threads: its file system may never answer.
        """
        before, found = self._watches.get(root, {}), dict[int, frozenset[str]]()
        for path, mask, names in (
            (root, _NAMES, frozenset({FOLDER})),
            (f"{root}/{FOLDER}", _CHANGES, frozenset(FILES)),
        ):
            with suppress(OSError):
                if self._inotify is not None:
                    found[self._inotify.add(path, mask)] = names
        self._watches[root] = found
        self._remove(before.keys() - found.keys())

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno)
            self._inotify.close()
            self._inotify = None

    def _remove(self, watches: Iterable[int]) -> None:
        if self._inotify is not None:
            for watch in watches:
                self._inotify.remove(watch)

    def _read(self) -> None:
        pending = list(self._inotify.pending()) if self._inotify else []
        for root, found in self._watches.copy().items():
            if any(watch in found and (not name or name in found[watch]) for watch, _, name in pending):
                self._changed(root)


ADDED = frozenset({GuidanceWatched.kind, GuidanceUnwatched.kind})
OFTEN_S, IDLE_S = 10.0, 3_600.0
"""Seconds between two looks where inotify says nothing, and while there is no project."""
BURST, BURST_S = 30, 300.0
"""Looks at once at a project, at most, in so many seconds; who changes more is looked at every `OFTEN_S`."""
PATIENCE_S = 10.0
"""Seconds within which the file system of a project answers."""


class DaemonGuidanceLog:
    """`GuidanceLog` of the daemon, for the threads that read files. It knows the newest changes alone."""

    def __init__(self, context: WatcherContext) -> None:
        self._context, self._loop = context, asyncio.get_running_loop()

    def state(self) -> Guidance:
        return self._context.state().of(GUIDANCE)

    def append(self, *drafts: Draft) -> None:
        async def record() -> None:
            for draft in drafts:
                await self._context.append(draft)

        asyncio.run_coroutine_threadsafe(record(), self._loop).result()

    def find(self, root: str, event_id: str) -> None:
        return None

    def changes(self, root: str) -> None:
        return None


class GuidanceWatcher:
    """The watcher `guidance`. A sample has the number of watched projects, and of those that wait for an agent."""

    name = key = "guidance"
    timeout = 120.0

    def __init__(self, context: WatcherContext) -> None:
        self._context = context
        now, digits = lambda: context.clock.now().at, lambda: secrets.token_hex(4)
        self._service = GuidanceService(DaemonGuidanceLog(context), DiskProjectFiles(), now, digits)
        self._faults, self.nudge = set[str](), asyncio.Event()
        self._watch, self._at_once = FileWatch(self._on_change), dict[str, deque[float]]()
        # Reading waits for whoever writes, and a project may lie where nobody ever answers.
        self._reached = FileThreads(PATIENCE_S)
        self._threads = FileThreads(PATIENCE_S, is_needed=lambda: True, in_child=False)
        context.listen(self._on_events)

    def _on_events(self, events: Sequence[Event]) -> None:
        if not ADDED.isdisjoint(event.kind for event in events):
            self.nudge.set()

    def _on_change(self, root: str) -> None:
        now, looks = time.monotonic(), self._at_once.setdefault(root, deque(maxlen=BURST))
        if not self.nudge.is_set() and (len(looks) < BURST or now - looks[0] > BURST_S):
            looks.append(now)
            self.nudge.set()

    def close(self) -> None:
        self._watch.close()

    @property
    def interval(self) -> float:
        return OFTEN_S if self._context.state().of(GUIDANCE).watched else IDLE_S

    def should_wake(self, window: Window) -> bool:
        """Never: what it records wakes the tick."""
        return False

    async def collect(self) -> Reading:
        """Look at each project; what another process records at the same time is not recorded twice."""
        roots = list(self._context.state().of(GUIDANCE).watched)
        self._watch.keep(roots)
        before, self._faults = self._faults, set()
        for root in roots:
            try:
                await self._reached.ask(root, partial(next, os.walk(root), None))
                await self._threads.ask(root, partial(self._watch.watch, root), "watch")
                await self._threads.ask(root, partial(self._service.look, root), "look")
            except (PulseError, OSError) as error:
                self._faults.add(f"{root}: {error}")
        # Said once: a watcher that fails is asked less often, and all other projects would wait for this one.
        if faults := self._faults - before:
            raise PulseError("; ".join(sorted(faults)))
        watched = self._context.state().of(GUIDANCE).watched.values()
        return Reading({"projects": len(roots), "pending": sum(bool(one.pending) for one in watched)})
