"""The watcher of what guarded processes take: memory, CPU, descriptors and threads of each tree."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.tree_usage import CpuMeter, process_usage, shared_once, tree_pids
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.proc import is_alive
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import PROCESS_USAGE, USAGE
from pulse_core.model.vitals import WINDOW_US, Reading, Window
from pulse_core.ports.host import ProcessId, ProcessUsage
from pulse_core.projections.gauges import (
    STREAKS_FIELD,
    FixedBound,
    Gauge,
    History,
    conclude_gauges,
    streaks,
    streaks_to_json,
)
from pulse_core.projections.state import CurrentState
from pulse_core.rules.measurements import too_early_reason, unmeasured_reason, usage_gauges
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings

STEP = 20
"""Processes that are read before the loop may do something else, of however many trees they are."""
UNSEEN = 3
"""Intervals without a sample after which what took too much before counts as doing so anew; or a minute, if longer."""
UNBOUND = "the settings set no bound for it any more"
"""Why it counts no more that a process took too much, though what it takes is sampled still."""


class ProcessUsageWatcher:
    """One sample with what each live guarded process takes with all that came out of it.

    Of each: pid, memory (bytes), cpu (cores, since the last sample), threads, descriptors (unless others may not know),
    processes. known: the live guarded processes, by name; members: who else is in the life of one, where that is known;
    window: the samples of the last minute, an earlier daemon's included.
    """

    name = key = PROCESS_USAGE
    conditions = (USAGE,)
    timeout = 10.0

    def __init__(
        self,
        settings: Callable[[], Settings],
        known: Callable[[], Mapping[str, ProcessId]],
        members: Callable[[str], Awaitable[tuple[ProcessId, ...]]],
        current_state: CurrentState,
        window: Callable[[], Window],
    ) -> None:
        self._settings, self._known, self._members = settings, known, members
        self._current_state, self._window = current_state, window
        self.nudge = asyncio.Event()
        self._clock, self._cpu, self._reads = SystemClock(), CpuMeter(time.monotonic), count(1)
        self._files = FileThreads(is_needed=lambda: True, in_child=False)

    @property
    def interval(self) -> float:
        """Seconds between two samples."""
        return self._settings().watch.usage_interval / US_PER_SECOND

    def should_wake(self, window: Window) -> bool:
        """Never: its conclusions are events, and those wake."""
        return False

    async def collect(self) -> Reading:
        """Measure every tree once, a few processes at a time."""
        settings, known = self._settings(), self._known()
        said = {
            one.name: await self._measured(one, known[one.name])
            for one in settings.process
            if one.name in known and is_alive(known[one.name])
        }
        self._cpu.forget_others()
        patience = max(WINDOW_US, UNSEEN * settings.watch.usage_interval)
        last, state, now = self._window().last, self._current_state(), self._clock.now()
        over = {
            name: streak
            for entry in (last.data if last else {}).values()
            for name, streak in streaks(entry).items()
        }
        of_all = [
            gauge._replace(value=None) if too_early_reason(gauge, one, state, now) else gauge
            for one in settings.process
            for gauge in usage_gauges(
                one,
                said.get(one.name, {}),
                unmeasured_reason(one.name, state.processes[one.name], patience, now),
            )
        ]
        bound = {gauge.name for gauge in of_all}
        of_all += [
            Gauge(name, FixedBound(1.0, 1.0), None, "", unwatched=UNBOUND)
            for name in state.conditions.raised
            if name.startswith(USAGE) and name not in bound
        ]
        drafts, now_over = conclude_gauges(of_all, (USAGE,), History(state.conditions, over, patience), now)
        for one in settings.process:
            lasting = {name: now_over[name] for name in one.usage_conditions if name in now_over}
            if lasting and one.name in said:
                said[one.name][STREAKS_FIELD] = streaks_to_json(lasting)
        return Reading(said, drafts)

    async def _measured(self, process: ProcessSettings, main: ProcessId) -> dict[str, Json]:
        found: list[ProcessUsage] = []
        others = [one.pid for one in await self._members(process.name)]
        for pid in tree_pids(main.pid, others):
            if one := process_usage(pid):
                found.append(one)
            if next(self._reads) % STEP == 0:
                await asyncio.sleep(0)
        memory, bound = sum(one.memory for one in found), process.memory_bound
        if bound and memory >= bound and len(found) > 1:
            # Slow where much is mapped, and only of use here: whatever counts once is less than what counts twice.
            pids = [one.pid for one in found]
            with suppress(TimeoutError):  # the kernel keeps the tables of who is just being killed
                told = await self._files.ask(f"the memory of {process.name}", lambda: shared_once(pids))
                memory = memory if told is None else told
        known = [one.descriptors for one in found if one.descriptors is not None]
        cores = self._cpu.cores(process.name, found)
        return {
            "pid": main.pid,
            "memory": memory,
            **({"cpu": cores} if cores is not None else {}),
            "threads": sum(one.threads for one in found),
            **({"descriptors": sum(known)} if known else {}),
            "processes": len(found),
        }
