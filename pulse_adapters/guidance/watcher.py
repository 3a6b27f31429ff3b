"""The daemon's watcher of the projects that were added: what has changed in their files is recorded at once."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from functools import partial

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_adapters.guidance.file_watch import FileWatch
from pulse_adapters.workers.file_threads import FileThreads
from pulse_core.capability import WatcherContext
from pulse_core.guidance.events import GuidanceUnwatched, GuidanceWatched
from pulse_core.guidance.projection import GUIDANCE, Guidance, GuidedProject
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.json_types import Json
from pulse_core.model.vitals import Reading, Window

ADDED = frozenset({GuidanceWatched.kind, GuidanceUnwatched.kind})
OFTEN_S, IDLE_S = 10.0, 3_600.0
"""Seconds between two looks where inotify says nothing, and while there is no project."""
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
        self._faults = set[str]()
        self.nudge = asyncio.Event()
        self._watch = FileWatch(self.nudge.set)
        # Reading waits for whoever writes, and a project may lie where nobody ever answers.
        self._threads = FileThreads(PATIENCE_S, is_needed=lambda: True)
        context.listen(self._on_events)

    def _on_events(self, events: Sequence[Event]) -> None:
        if not ADDED.isdisjoint(event.kind for event in events):
            self.nudge.set()

    def close(self) -> None:
        self._watch.close()

    @property
    def interval(self) -> float:
        return OFTEN_S if self._projects() else IDLE_S

    def should_wake(self, window: Window) -> bool:
        """Never: what it records wakes the tick."""
        return False

    async def collect(self) -> Reading:
        """Look at each project; what another process records at the same time is not recorded twice."""
        roots = list(self._projects())
        self._watch.keep(roots)
        before, self._faults = self._faults, set()
        for root in roots:
            try:
                await self._threads.ask(root, partial(self._watch.watch, root), "watch")
                await self._threads.ask(root, partial(self._service.look, root), "look")
            except (PulseError, OSError) as error:
                self._faults.add(f"{root}: {error}")
        # Said once: a watcher that fails is asked less often, and all other projects would wait for this one.
        if faults := self._faults - before:
            raise PulseError("; ".join(sorted(faults)))
        data: Mapping[str, Json] = {
            "projects": len(roots),
            "pending": sum(bool(project.pending) for project in self._projects().values()),
        }
        return Reading(data)

    def _projects(self) -> Mapping[str, GuidedProject]:
        found = self._context.state().of(GUIDANCE).projects
        return {root: project for root, project in found.items() if project.is_watched}
