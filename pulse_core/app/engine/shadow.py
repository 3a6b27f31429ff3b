"""Runs a shadow: folds other rules on the daemon's ticks without executing anything, and reports the differences."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import STAGING, WorkflowContext
from pulse_core.app.engine.effect_diff import (
    WishedEffect,
    WishTracker,
    recorded_effects,
)
from pulse_core.app.engine.live_snapshots import DaemonTicks
from pulse_core.app.engine.recorded_ticks import RecordedTick
from pulse_core.app.engine.user_rules import kept_user_projections
from pulse_core.app.state import history_of
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.engine.engine_context import restarts
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import iso
from pulse_core.ports.engine import EngineFault, Revision, RuleHost
from pulse_core.projections.state import Snapshot

EVERY = 15.0
"""Seconds between two lines that say how far the shadow is."""
FIRST = 10
"""Ticks after each of which that is said, so that nobody who has just begun one wonders."""
MOST_FAULTS = 100
"""Different ones that are written down."""
SLACK_US = 2_000_000
"""Of one key, wishes that are not farther apart are the same: production folds only the newest of ticks in a hurry."""
ShadowLine = Mapping[str, Any]
WISH = WishedEffect._fields


class ShadowLog(Protocol):
    """What a shadow did, a line each. Nothing else is ever told of it, least of all the log."""

    def begin(self, **said: Any) -> None:
        """A shadow begins. Raises PulseError where that can't be told."""

    def write(self, what: str, **said: Any) -> None:
        """One line more; one that the disk does not take is missed, and no reason to end."""


class ShadowTarget(NamedTuple):
    """What is run as a shadow, and where it is told."""

    engine: WorkflowContext
    revision: Revision
    log: ShadowLog


class Shadow:
    """Folds each tick as it is recorded. Its host is started again when it ends, the later the oftener that happens."""

    def __init__(self, what: ShadowTarget, source: DaemonTicks) -> None:
        self.what, self.source = what, source
        self._prev = source.first
        self._host: RuleHost | None = None
        self._restarts = restarts()
        self._ticks = 0
        self._errors, self._faults = 0, set[str]()
        self._tracker = WishTracker()
        self._told = 0.0

    async def begin(self) -> None:
        """Start the host; raises CannotLoad."""
        self._host = await self._started()
        first, rules = self.source.first, list(self._host.loaded.rules)
        state: dict[str, object] = {"tick": first.tick, "at": first.now.at, "rules": rules}
        if self.what.revision.commit == STAGING:  # which commit lies there, and what differs from it
            staging = self.what.engine.repository.staging()
            state |= {"commit": staging.commit, "dirty": list(staging.dirty)}
        self.what.log.begin(revision=self.what.revision.commit, **state)
        self._tell()

    async def follow(self) -> None:
        """Fold each tick, for ever."""
        async for tick in self.source.ticks():
            if await self._is_up():
                await self._take(tick)
            self._prev = tick.snapshot
            if self._ticks <= FIRST or time.monotonic() - self._told >= EVERY:
                self._tell()

    async def end(self, why: str) -> None:
        """Say how far it came, and end the host."""
        self._tell()
        self.what.log.write("ended", why=why)
        if self._host:
            await self._host.close()

    async def _started(self) -> RuleHost:
        engine = self.what.engine
        kept = kept_user_projections(engine.home)
        return await engine.rule_hosts.start(self.what.revision, self._prev, history_of(engine.home), kept)

    async def _is_up(self) -> bool:
        """Whether there is a host, if need be a new one."""
        if self._host and self._host.alive:
            return True
        now = time.monotonic()
        if self._host:
            await self._host.close()
            self._host = None
            self._restarts.ended(now)
        if now < self._restarts.due:
            return False
        try:
            self._host = await self._started()
            self._restarts.started(now)
        except PulseError as error:
            self._write_faults((EngineFault("engine", str(error)),), self._prev)
            self._restarts.failed(now)
        return self._host is not None

    async def _take(self, tick: RecordedTick) -> None:
        assert self._host is not None
        self._host.feed(tick.news)
        curr = tick.snapshot
        fold_result = filter_effects(await self._host.fold(self._prev, curr), curr)
        self._ticks += 1
        for wish in self._tracker.begun(self._prev, curr, fold_result.verdict):
            self.what.log.write("wish", **wish._asdict())
        self._write_faults(fold_result.faults, curr)

    def _write_faults(self, faults: Sequence[EngineFault], at: Snapshot) -> None:
        """Each is counted, and written down the first time."""
        self._errors += len(faults)
        for fault in faults:
            words = f"{fault.whose}: {fault.message}"
            if words not in self._faults and len(self._faults) < MOST_FAULTS:
                self._faults.add(words)
                self.what.log.write("fault", words=words, tick=at.tick, at=iso(at.now.at))

    def _tell(self) -> None:
        self._told = time.monotonic()
        last = self._prev
        self.what.log.write("through", tick=last.tick, at=last.now.at, ticks=self._ticks, errors=self._errors)


async def run_shadow(what: ShadowTarget, ready: Callable[[], None]) -> None:
    """Run the shadow until it is cancelled; `ready` is called when its rules are loaded."""
    why = "it failed"
    with closing(DaemonTicks(what.engine.home, is_patient=True)) as source:
        shadow = Shadow(what, source)
        await shadow.begin()
        ready()
        try:
            await shadow.follow()
        except BaseException as error:
            is_stopped = isinstance(error, asyncio.CancelledError)
            why = "it was stopped" if is_stopped else f"{type(error).__name__}: {error}"
            raise
        finally:
            await shadow.end(why)


def shadow_report(home: HomeContext, said: Sequence[ShadowLine], running: bool) -> ShadowLine:
    """What the last shadow wished beside what production did in the same ticks. Raises PulseError if there was none.

    said: the lines of its log; running: whether it still runs.
    """
    if not said:
        raise PulseError("there was no shadow yet; start one with: upulse shadow start")
    begun, through = said[0], [line for line in said if line["what"] == "through"]
    last = through[-1] if through else begun
    theirs = [{name: line[name] for name in WISH} for line in said if line["what"] == "wish"]
    upto = max([last["tick"], *(wish["tick"] for wish in theirs)])
    ours = [wish._asdict() for wish in recorded_effects(home, begun["at"], begun["tick"] + 1, upto)]
    return {
        "running": running,
        "revision": begun["revision"],
        "commit": begun.get("commit", begun["revision"]),
        "dirty": begun.get("dirty", []),
        "rules": begun["rules"],
        "since": iso(begun["at"]),
        "until": iso(last["at"]),
        "ticks": last.get("ticks", 0),
        "wishes": {"shadow": len(theirs), "main": len(ours)},
        "differences": shadow_differences(theirs, ours),
        "errors": last.get("errors", 0),
        "faults": [
            {name: line[name] for name in ("at", "tick", "words")} for line in said if line["what"] == "fault"
        ],
        "ended": next((line["why"] for line in said if line["what"] == "ended"), None),
    }


def shadow_differences(theirs: Iterable[ShadowLine], ours: Iterable[ShadowLine]) -> Sequence[ShadowLine]:
    """The wishes that only the shadow had, or only main, by time."""
    left: dict[str, list[ShadowLine]] = defaultdict(list)
    for wish in ours:
        left[wish["key"]].append(wish)
    only = []
    for wish in theirs:
        tick, at = wish["tick"], _us(wish)
        near = (one for one in left[wish["key"]] if one["tick"] == tick or abs(_us(one) - at) <= SLACK_US)
        same = next(near, None)
        if same:
            left[wish["key"]].remove(same)
        else:
            only.append({"only": "shadow", **wish})
    only += [{"only": "main", **wish} for wishes in left.values() for wish in wishes]
    return sorted(only, key=lambda one: str(one["at"]))


def _us(wish: ShadowLine) -> float:
    return datetime.fromisoformat(wish["at"]).timestamp() * 1e6
