"""Memory consumers that may be stopped: processes that the settings' patterns match, never those Pulse keeps alive."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pulse_adapters.host.process_search import find_matching
from pulse_adapters.workers.proc import (
    ProcStat,
    descendants,
    live_processes,
    program_name,
    read_proc_file,
    read_stat,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_core.model.json_types import Json
from pulse_core.model.pattern import search_pattern
from pulse_core.ports.host import ProcessId
from pulse_core.settings.settings import Settings

MAX_LISTED = 10
"""How many are listed, the largest first."""

_GUARDED = "guarded:"


class MemoryUse(NamedTuple):
    """The bytes that a process uses in memory and in swap, and its user."""

    rss: int
    swap: int
    uid: int


class MemoryConsumers:
    """Searches for memory consumers.

    known: the live guarded processes, by name; running: session ids of the commands that run for Pulse.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        known: Callable[[], Mapping[str, ProcessId]],
        running: Callable[[], Collection[int]],
    ) -> None:
        self._settings, self._known, self._running = settings, known, running

    async def largest(self) -> list[Mapping[str, Json]]:
        """The largest ones: pid, started, rss and swap (bytes), name, and the pattern that they match."""
        return await in_process_thread(_largest, await self._allowed())

    async def is_one(self, found: ProcessId, pattern: str) -> bool:
        """Whether this exact process may still be stopped, by this pattern."""
        return pattern in self._settings().resources.stop and found in await self._allowed(pattern)

    async def _allowed(self, *patterns: str) -> Mapping[ProcessId, str]:
        """The processes that may be stopped, each with the first pattern that it matches.

        None, if a guarded one can't be searched for: then it is unknown which must be kept.
        """
        settings = self._settings()
        wanted = {text: one for text in patterns or settings.resources.stop if (one := search_pattern(text))}
        kept = {f"{_GUARDED}{one.name}": search_pattern(one.match) for one in settings.process if one.match}
        known = {name: pattern for name, pattern in kept.items() if pattern}
        if len(known) < len(kept):
            return {}
        hits = await find_matching(wanted | known, self._running())
        names = {process.name for process in settings.process}
        guarded = {one.pid for name, one in self._known().items() if name in names}
        guarded |= {one.pid for name in known for one in hits[name]}
        # Beside the loop: of thousands of processes that takes some tenths of a second, while memory is short.
        spared = await in_process_thread(lambda: protected_pids(guarded, live_processes()))
        return {
            found: pattern
            for pattern in reversed(wanted)
            for found in hits[pattern]
            if found.pid not in spared
        }


def _largest(allowed: Mapping[ProcessId, str]) -> list[Mapping[str, Json]]:
    """What `largest` tells of these. Blocks: for threads."""
    told: list[Mapping[str, Json]] = []
    for found, pattern in allowed.items():
        held = memory_of(found.pid)
        if held and os.geteuid() in (0, held.uid):
            sizes = {"rss": held.rss, "swap": held.swap}
            told.append({**found._asdict(), **sizes, "name": program_name(found.pid), "pattern": pattern})
    return sorted(told, key=lambda one: (-one["rss"] - one["swap"], one["pid"]))[:MAX_LISTED]


def protected_pids(guarded: Collection[int], processes: Iterable[ProcStat]) -> set[int]:
    """The pids that must not be ended: guarded ones, Pulse, its children, and all whose end would end these.

    Ending a process ends its descendants, and the group and session that it leads. `processes` may leave out Pulse.
    """
    own = os.getpid()
    entries = {one.pid: one for one in processes}
    if (pulse := read_stat(own)) is not None:
        entries[own] = pulse
    helpers = {one.pid for one in entries.values() if one.parent == own and one.pid not in guarded}
    kept = {own, *guarded, *descendants(helpers, entries)}
    spared = {0, 1, *kept}
    for pid in kept:
        seen = entries.get(pid)
        while seen is not None and seen.pid > 1:
            spared |= {seen.pid, seen.group, seen.session}
            seen = entries.get(seen.parent)
    return spared


def memory_of(pid: int) -> MemoryUse | None:
    """The memory that a process uses; None if it is gone."""
    said = dict(
        line.split(b":", 1)
        for line in (read_proc_file(f"/proc/{pid}/status") or b"").splitlines()
        if b":" in line
    )
    if b"VmRSS" not in said:
        return None
    rss, swap = (int(said.get(name, b"0 kB").split()[0]) * 1024 for name in (b"VmRSS", b"VmSwap"))
    return MemoryUse(rss, swap, int(said[b"Uid"].split()[1]))
