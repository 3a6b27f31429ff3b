"""`upulse dev`: loads staging at every save, folds it at every tick, and reports what it does.

A save starts a new host beside the one at work, and the new one takes over once it stands: what is new in the log
meanwhile is held back for it. Then the last snapshot is folded once more, so that an author sees what the change does
without waiting for the next tick. Nothing that staging wishes is done, unless somebody who carries it out is given.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace

from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import STAGING, WorkflowContext
from pulse_core.app.engine.dev_reports import (
    DevRemark,
    DevReport,
    LoadRefused,
    Refusal,
    RulesLoaded,
    SampleTaken,
    Tell,
    TickSeen,
    nothing_refused,
    tick_report,
)
from pulse_core.app.engine.live_snapshots import DaemonTicks, LiveSnapshots, MachineSamples
from pulse_core.app.engine.recorded_ticks import RecordedTick
from pulse_core.app.engine.staging_actions import StagingActions, merge_windows
from pulse_core.app.state import history_of
from pulse_core.app.status import why_unheard
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.engine import CannotLoad, History, LoadedRevision, Revision, RuleHost, RuleHosts
from pulse_core.ports.watcher import Watcher
from pulse_core.projections.state import Snapshot

Execute = Callable[[Effect], Awaitable[str]]
"""Has an effect done; what is to be said of it."""


@dataclass(frozen=True)
class DevTarget:
    """What is tried: the engine, its tree, who hears of it, and who does what it wishes.

    saves: the files that were saved beneath a folder, each time that some were; machine: the watcher of this machine's
    vital signs, for when no daemon runs; refusal: what would be refused on this machine, and why.
    """

    engine: WorkflowContext
    saves: Callable[[str], AsyncIterator[Collection[str]]]
    machine: Callable[[], AbstractContextManager[Watcher]]
    path: str
    tell: Tell
    execute: Execute | None = None
    refusal: Refusal = nothing_refused


@dataclass
class _Course:
    """Where the host stands: the last two snapshots, and what came while another host was starting."""

    source: LiveSnapshots
    prev: Snapshot
    curr: Snapshot
    late: list[Event] | None = None


class DevSession:
    """Runs the tree at `path`. tell: hears all there is to say; execute: is given each wish when it begins that the
    tree has no executor for; actions: run its watchers and its executors; None: they are not asked; refusal: as in
    `DevTarget`."""

    def __init__(
        self,
        hosts: RuleHosts,
        history: History,
        path: str,
        tell: Tell,
        execute: Execute | None = None,
        actions: StagingActions | None = None,
        refusal: Refusal = nothing_refused,
    ) -> None:
        self.hosts, self.history, self.path = hosts, history, path
        self.tell, self.execute, self.actions, self.refusal = tell, execute, actions, refusal
        self._host: RuleHost | None = None
        self._course: _Course | None = None
        self._loading, self._folding = asyncio.Lock(), asyncio.Lock()
        self._going_on: frozenset[str] = frozenset()

    async def follow(self, source: LiveSnapshots) -> None:
        """Load the tree as it is, and fold what this source shows until it ends."""
        await self.begin(source)
        async for tick in source.ticks():
            await self.take(tick)

    async def begin(self, source: LiveSnapshots) -> None:
        """Load the tree as it is, and fold the first snapshot of this source."""
        await self.close()
        self._course = _Course(source, source.first, source.first)
        self.tell(DevRemark(source.words))
        await self.load(())

    async def load(self, files: Collection[str]) -> None:
        """Start a host on what is saved, and let it take over when it stands."""
        async with self._loading:
            if (course := self._course) is None:
                return
            began = time.monotonic()
            try:
                host = await self._started(course)
            except CannotLoad as error:
                course.late = None
                is_up = self._host is not None and self._host.alive
                self.tell(LoadRefused(str(error), files, is_up))
            else:
                old = await self._turn(host, course)
                self.tell(RulesLoaded(host.loaded, files, time.monotonic() - began))
                await self._again(course)
                if old:
                    await old.close()
                await self._sense(host.loaded)

    async def _sense(self, loaded: LoadedRevision) -> None:
        """Have the watchers of what was loaded asked from now on."""
        if self.actions is None:
            if loaded.watchers:
                self.tell(DevRemark(f"not asked now: {', '.join(loaded.watchers)}"))
        elif loaded.watchers or loaded.executors:
            await self.actions.load(self.path)
        else:
            await self.actions.close()

    async def sensed(self) -> None:
        """Fold the last snapshot again, with what the tree's own watchers brought since."""
        async with self._folding:
            if (course := self._course) and self._host and self._host.alive:
                course.prev, course.curr = course.curr, self._whole(course.curr)
                await self._fold(course, is_again=True)

    def _whole(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the windows of the tree's own watchers."""
        own = self.actions.windows if self.actions else {}
        return replace(snapshot, windows=merge_windows(snapshot.windows, own)) if own else snapshot

    async def _started(self, course: _Course) -> RuleHost:
        course.late = []
        revision = Revision(STAGING, self.path)
        return await self.hosts.start(revision, course.curr, self.history, {})

    async def _turn(self, host: RuleHost, course: _Course) -> RuleHost | None:
        """Tell the new host what it missed, and let it fold from now on; the one that is not wanted any more."""
        async with self._folding:
            host.feed(course.late or ())
            course.late = None
            if self._course is not course:
                return host  # the source has changed meanwhile
            old, self._host = self._host, host
            return old

    async def _again(self, course: _Course) -> None:
        """Show what the new rules say of the last snapshot, without waiting for the next one."""
        async with self._folding:
            self._going_on = frozenset()
            if self._course is course:
                await self._fold(course, is_again=True)

    async def take(self, tick: RecordedTick) -> None:
        """Fold one more snapshot; a host that has ended is replaced first."""
        course = self._course
        assert course is not None
        async with self._folding:
            course.prev, course.curr = course.curr, self._whole(tick.snapshot)
            if course.late is not None:
                course.late += tick.news
            if self._host and self._host.alive:
                self._host.feed(tick.news)
                return await self._fold(course, is_again=False)
        if self._host and not self._loading.locked():
            await self.load(())  # it loaded once, and may do so again
        return None

    async def _fold(self, course: _Course, is_again: bool) -> None:
        if self._host is None:
            return
        began, curr = time.monotonic(), course.curr
        fold_result = filter_effects(await self._host.fold(course.prev, curr), curr)
        own = self.actions.params if self.actions else {}
        took = time.monotonic() - began
        seen = tick_report(fold_result, course.prev, curr, took, is_again, own, self.refusal)
        self.tell(seen)
        await self._execute(seen)

    async def _execute(self, seen: TickSeen) -> None:
        news = [wish.effect for wish in seen.wishes if wish.state == "new"]
        begun = [effect for effect in news if effect.key not in self._going_on]
        self._going_on = frozenset(effect.key for effect in news)
        for effect in begun if self.execute else ():
            own = self.actions if self.actions and effect.action in self.actions.executors else None
            execute = own.execute if own else self.execute
            assert execute is not None
            self.tell(DevRemark(await execute(effect)))

    async def close(self) -> None:
        """End the host."""
        self._course = None
        async with self._folding:
            host, self._host = self._host, None
        if self.actions:
            await self.actions.close()
        if host:
            await host.close()


async def try_once(target: DevTarget) -> bool:
    """Load staging and fold one snapshot; whether nothing was wrong."""
    wrong: list[DevReport] = []

    def tell(news: DevReport) -> None:
        if isinstance(news, LoadRefused) or (isinstance(news, TickSeen) and news.faults):
            wrong.append(news)
        target.tell(news)

    async with (
        live_snapshots(target) as source,
        open_dev_session(replace(target, tell=tell), goes_on=False) as dev,
    ):
        await dev.begin(source)
    return not wrong


async def follow_staging(target: DevTarget) -> None:
    """Follow saves and ticks, for ever."""
    async with open_dev_session(target) as dev:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_follow_saves(dev, target), name="saves")
                await _follow_ticks(dev, target)
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed


async def _follow_saves(dev: DevSession, target: DevTarget) -> None:
    async for files in target.saves(target.path):
        await dev.load(files)


async def _follow_ticks(dev: DevSession, target: DevTarget) -> None:
    """One source after the other: a daemon may come and go."""
    while True:
        async with live_snapshots(target) as source:
            await dev.follow(source)


@asynccontextmanager
async def open_dev_session(target: DevTarget, goes_on: bool = True) -> AsyncIterator[DevSession]:
    """Runs the tree. goes_on: its watchers, too, with a child that stands by as soon as there is nothing more urgent."""
    engine = target.engine
    hosts = engine.standby_hosts()
    woken = asyncio.Event()

    def tell(news: DevReport) -> None:
        target.tell(news)
        if goes_on and (isinstance(news, LoadRefused) or (isinstance(news, TickSeen) and news.is_again)):
            hosts.warm()
        if isinstance(news, SampleTaken) and news.wakes:
            woken.set()

    actions = StagingActions(engine.action_hosts, engine.home.clock, tell) if goes_on else None
    dev = DevSession(
        hosts, history_of(engine.home), target.path, tell, target.execute, actions, target.refusal
    )
    waking = asyncio.create_task(_wake(dev, woken), name="folding what staging senses")
    try:
        yield dev
    finally:
        waking.cancel()
        await dev.close()
        await hosts.close()


async def _wake(dev: DevSession, woken: asyncio.Event) -> None:
    """Fold once more whenever a watcher brought what is worth a tick, for ever."""
    while await woken.wait():
        woken.clear()
        await dev.sensed()


@asynccontextmanager
async def live_snapshots(target: DevTarget) -> AsyncIterator[LiveSnapshots]:
    """Beside the daemon if one runs, else alone."""
    home = target.engine.home
    if home.daemon.lock_holder():
        with closing(DaemonTicks(home)) as beside:
            yield beside
        return
    with target.machine() as sense:
        yield await MachineSamples.begun(home, sense)


def daemon_executor(engine: WorkflowContext) -> Execute:
    """Has effects done by the daemon that runs, in the caller's name; raises PulseError if none does."""
    home = engine.home
    if why := why_unheard(home):
        raise PulseError(f"{why}; or leave out --execute, since nobody would do what staging wishes")

    async def execute(effect: Effect) -> str:
        return await asyncio.to_thread(_submitted, home, effect)

    return execute


def _submitted(home: HomeContext, effect: Effect) -> str:
    """Have the daemon record one; what came of it."""
    data = effect.model_dump(include={"action", "key", "params", "not_after"}, exclude_none=True)
    data["reason"] = f"{effect.rule} in staging: {effect.reason}"
    draft = {"kind": Effect.kind, "subject": effect.key, "data": data}
    try:
        event, existing = home.daemon.append(draft)
    except PulseError as error:
        return f"{effect.key} is not done: {error}"
    if existing:
        return f"{effect.key} is open already: effect {event['id']}"
    return f"{effect.key} is on its way: effect {event['id']}"
