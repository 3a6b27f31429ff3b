"""Garbage of a home: old vitals, objects that nothing names, and files that are of no use any more.

An object is on disk before the event that names it, so one that nothing names may be about to be named. That is why
what was touched within the hour stays, what was put last stays whatever the clock says, and only the process that
writes the log deletes: the daemon, or whoever holds the home's lock. In doubt nothing goes.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pulse_core.app.append import append
from pulse_core.app.context import HomeContext
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import GcDone
from pulse_core.ports.stores import Sweep, SweepResult, Vitals
from pulse_core.settings.settings import WatchSettings

MINIMUM_AGE = 3_600.0
"""Seconds: what is younger may be somebody's work."""


PATIENCE = 600.0
"""Seconds without a sign of life after which a daemon that collects garbage is given up."""


@dataclass(frozen=True)
class Sweeper:
    """A `Sweep` of a home.

    old_objects: those that are older than MINIMUM_AGE with their bytes, many at a time; discard: deletes those of them
    that nobody has put since; advance_references: goes on to the head of the log, raises Damaged if a reference is not
    what was recorded; is_referenced: whether a row of the log names an object; unnamed_by_ticks: those of the given
    objects that no tick names; leftover_sizes: the bytes that each file of no use would give back, and
    remove_leftovers: those that it gave back; is_in_doubt: whether the log is damaged, or copies of damaged stores are
    kept, whose rows may name objects, too. All but the last are for a thread.
    """

    old_objects: Callable[[], Iterable[Mapping[str, int]]]
    discard: Callable[[Iterable[str]], Sequence[int]]
    advance_references: Callable[[], None]
    is_referenced: Callable[[str], bool]
    unnamed_by_ticks: Callable[[Sequence[str]], Sequence[str]]
    leftover_sizes: Callable[[], Sequence[int]]
    remove_leftovers: Callable[[], Sequence[int]]
    is_in_doubt: Callable[[], bool]

    async def __call__(self) -> SweepResult:
        """Sweep; what was taken away."""
        orphans = await self._orphans()
        objects = await asyncio.to_thread(self.discard, orphans)
        files = await asyncio.to_thread(self.remove_leftovers)
        return SweepResult(len(objects), len(files), sum(objects) + sum(files))

    async def forecast(self) -> SweepResult:
        """What would be taken away."""
        orphans = await self._orphans()
        files = await asyncio.to_thread(self.leftover_sizes)
        return SweepResult(len(orphans), len(files), sum(orphans.values()) + sum(files))

    async def _orphans(self) -> Mapping[str, int]:
        """Old objects that neither a row of the log nor a tick names, with their bytes."""
        if self.is_in_doubt():
            return {}
        await asyncio.to_thread(self.advance_references)
        orphans: dict[str, int] = {}
        for objects in await asyncio.to_thread(lambda: list(self.old_objects())):
            if unknown := [name for name in objects if not self.is_referenced(name)]:
                unnamed = await asyncio.to_thread(self.unnamed_by_ticks, unknown)
                orphans |= {name: objects[name] for name in unnamed}
        return orphans


async def collect_garbage(vitals: Vitals, sweep: Sweep, now: int, watch: WatchSettings) -> GcDone:
    """Take away what is of no use now (UTC microseconds); what went, and what could not be done."""
    began = asyncio.get_running_loop().time()
    trimmed = await vitals.trim(now - watch.keep, now - watch.keep_minutes)
    done = GcDone(**trimmed._asdict())
    try:
        done = done.model_copy(update=(await sweep())._asdict())
    except Exception as error:  # noqa: BLE001  a home that is not swept must not end what keeps the machine alive
        told = str(error) if isinstance(error, PulseError | OSError) else f"{type(error).__name__}: {error}"
        done = done.model_copy(update={"fault": "; ".join(filter(None, (done.fault, told)))})
    took = asyncio.get_running_loop().time() - began
    return done.model_copy(update={"took_ms": round(took * 1000)})


def ask_daemon(home: HomeContext) -> Mapping[str, Json]:
    """Have the daemon take it away now; the fields of its `gc-done`. Raises PulseError if it does not say what went."""
    request = append(home, "gc-requested")
    for event in home.daemon.follow(int(request.event["seq"]), ("gc-done",), brief=True, patience=PATIENCE):
        if event["cause"] == request.event["id"]:
            data = event["data"]
            return {name: data.get(name, field.default) for name, field in GcDone.model_fields.items()}
    raise PulseError("the daemon did not say what went; see: upulse daemon logs")
