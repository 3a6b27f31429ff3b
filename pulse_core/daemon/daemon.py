"""The daemon: its loops, and the order in which they start and stop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from pulse_core.app.compute_status import Beat, compute_status, watcher_status
from pulse_core.composition import SURVIVAL
from pulse_core.daemon.delays import LASTING_US, Delays
from pulse_core.daemon.event_durations import EventDurations
from pulse_core.daemon.housekeeping import GarbageCollection, Housekeeping
from pulse_core.daemon.incident_checkpoints import IncidentCheckpoints
from pulse_core.daemon.load_shedding import REFLEX_ALONE, SelfMonitor
from pulse_core.daemon.parts import Parts
from pulse_core.daemon.reporter import Reporter
from pulse_core.daemon.request_handler import RequestHandler
from pulse_core.daemon.safe_mode import left_out
from pulse_core.engine.engine_context import EngineContext, EngineParts
from pulse_core.engine.engine_controller import NO_HOST, EngineController
from pulse_core.engine.loop_supervisor import LoopSupervisor
from pulse_core.engine.rollback_engine import RollbackEngine
from pulse_core.execute import ExecutorLoop, ExecutorRegistry
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.home_status import DaemonStatus, HomeStatus
from pulse_core.model.kinds import (
    AnswerDelayed,
    ConditionCleared,
    DaemonHealthy,
    DaemonStarted,
    DaemonStopped,
    EnginePromoted,
    EngineRolledBack,
    ReloadRequested,
    RestartDelayed,
    SafeModeEntered,
    SafeModeLeft,
)
from pulse_core.model.moment import US_PER_SECOND, iso
from pulse_core.model.names import ENGINE, NOT_WATCHED, OPTIONAL_WATCHERS, PLUGINS, SYSTEM_RESOURCE
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.model.vitals import WINDOW_US, Window
from pulse_core.ports.engine import ReservedNames
from pulse_core.ports.executor import Executor
from pulse_core.ports.loops import Work, is_cancelled
from pulse_core.ports.watcher import Watcher, conditions_of
from pulse_core.projections.conditions import ENGINE_MISSING, GONE, UNWRITTEN
from pulse_core.projections.control import EPISODE, HEALTHY
from pulse_core.projections.state import Snapshot
from pulse_core.record.gate import Gate
from pulse_core.record.journal import Journal
from pulse_core.record.view import restore_state
from pulse_core.tick import RuleFolds, Sources, Stores, Ticker
from pulse_core.watch.loop import WatchLoop
from pulse_core.watch.process_alive import ProcessAlive
from pulse_core.watch.watcher_costs import Cost

LEAVING = frozenset({SafeModeLeft.kind, EnginePromoted.kind, EngineRolledBack.kind})
"""The kinds by which safe mode may end."""
RELOAD_PAUSE, MOST_RELOADS = 1.0, 100
"""Seconds from one reload to the next, and how many requests one answers: after each everything is looked at anew, which
takes tens of milliseconds of the loop."""


class Daemon:
    """Runs the loops in one TaskGroup. One of survival's own that ends before `stop` ends the daemon; the error names it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = p = parts
        self.journal = Journal(p.log, p.clock, p.new_id, lambda words: self.reporter("log", words))
        self.reporter = Reporter(self.journal)
        self.engine_controller = self._engine_controller(p.engine) if p.engine else None
        self.supervise = self._loop_supervisor(self.engine_controller).run
        executors = dict(p.executors)
        if self.engine_controller:
            executors[RollbackEngine.action] = RollbackEngine(self.engine_controller)
        self.executors = ExecutorRegistry(executors, is_complete=not self.engine_controller)
        self.gate = Gate(self.journal, p.view, p.current_settings, self.executors, p.clock)
        self.executor = ExecutorLoop(
            self.journal,
            p.view,
            p.current_settings,
            self.executors,
            p.clock,
            p.dice,
            self.reporter,
            p.end_remains,
        )
        self.processes = ProcessAlive(
            p.table,
            p.clock,
            p.current_settings,
            p.view,
            p.health,
            lambda: self.watch.windows.get(ProcessAlive.key, Window()),
        )
        self.budget = SelfMonitor(
            p.current_settings, lambda: self.watch.newest(SYSTEM_RESOURCE), self.reporter
        )
        self.delays = Delays()
        self.ticker = self._ticker()
        watchers = (self.processes, *p.watchers)
        wake, answered = self.ticker.waker, self.ticker.answered
        self.watch = WatchLoop(
            watchers,
            self.journal,
            p.vitals,
            p.clock,
            wake,
            self.reporter,
            answered,
            self.budget.pace,
            self.engine_controller.host_supervisor.report_watcher_fault if self.engine_controller else None,
            self.supervise,
            p.cpu,
            wake.ask,
        )
        stores, last = (p.log, p.vitals, p.checkpoints), lambda: self.ticker.prev
        self.housekeeping = Housekeeping(*stores, p.current_settings, last, self.reporter, self.budget)
        self.event_durations = EventDurations()
        self.incidents = IncidentCheckpoints(
            p.log,
            p.checkpoints,
            lambda: p.current_settings().daemon.checkpoint_every / US_PER_SECOND,
            self.reporter,
        )
        self.garbage_collection = GarbageCollection(
            p.vitals, p.sweep, p.clock, p.current_settings, self.reporter
        )
        self.request_handler = RequestHandler(self.gate, p.log, self.report, p.view.recorded)
        self._requests: asyncio.Queue[Event | None] = asyncio.Queue()
        self._begun = {name: asyncio.Event() for name in parts.services}
        self._stopping = self._watches_all = False
        self._state, self._since = "starting", ""

    def _ticker(self) -> Ticker:
        p = self.parts
        submit = partial(self.executor.submit, gate=self.gate)
        inside = self.engine_controller.host_supervisor.fold if self.engine_controller else None
        folding = RuleFolds(SURVIVAL, inside, submit, p.rules)
        sources = Sources(p.view, lambda: self.watch.windows, p.current_settings, p.clock)
        stores = Stores(p.vitals, p.objects, p.version, lambda: self.housekeeping.flush_soon())
        failed, alone = self.reporter, self._is_reflex_alone
        return Ticker(sources, folding, stores, failed, alone, self.supervise, self._note_delays)

    def _note_delays(self, curr: Snapshot, verdict: Verdict, withheld: Sequence[WithheldEffect]) -> None:
        self.reporter.put(*self.delays.after(curr, verdict, withheld), *self.delays.lasting(curr.now))
        if self.delays.began_at(curr.now):  # only a tick can tell whether it still lasts
            asyncio.get_running_loop().call_later(LASTING_US / US_PER_SECOND, self.ticker.waker, "delay")

    def _is_reflex_alone(self) -> bool:
        return self.budget.shed.level >= REFLEX_ALONE

    def _loop_supervisor(self, engine: EngineController | None) -> LoopSupervisor:
        if engine is None:
            return LoopSupervisor(partial(self.reporter, "tick"))
        return LoopSupervisor(engine.report_loop, engine.put_aside)

    def _engine_controller(self, engine: EngineParts) -> EngineController:
        p = self.parts
        watchers = (*p.watchers, *p.optional_watchers)
        own = (ProcessAlive.name, *(one.name for one in watchers))
        keys = (ProcessAlive.key, *(one.key for one in watchers))
        taken = ReservedNames(own, keys, (*p.executors, RollbackEngine.action))
        context = EngineContext(
            self.journal,
            p.checkpoints,
            p.view,
            p.current_settings,
            self._last_whole_snapshot,
            self.reporter,
            self._register,
            taken,
        )
        return EngineController(engine, context)

    def _register(self, watchers: Sequence[Watcher], executors: Mapping[str, Executor]) -> None:
        """Run the engine's own watchers and executors, and stop those of the previous commit."""
        self.watch.register(watchers)
        self.executors.register(executors)
        self.executor.nudge()

    def _last_whole_snapshot(self) -> Snapshot:
        """The last snapshot that the whole onion has folded; the recorded state if that one has provisional events."""
        seen = self.ticker.last_whole
        if seen and not seen.state.provisional:
            return seen
        windows, recorded = self.watch.windows, self.parts.view.recorded()
        return Snapshot(
            self.ticker.number, self.parts.clock.now(), self.parts.current_settings(), windows, recorded
        )

    async def run(
        self,
        stop: asyncio.Event,
        restored: Callable[[], None] = lambda: None,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Run until `stop` is set; then drain, in the direction in which data flows.

        restored: called once the projections are restored, which may have taken the reading of the whole log; ready: called
        once every service serves.
        """
        await self._begin(restored)
        async with asyncio.TaskGroup() as group:
            sources = [
                self._start(group, "watch", self.watch.run()),
                *(self._keep(group, name, work) for name, work in self._sources().items()),
            ]
            ticking = self._start(group, "tick", self.ticker.run())
            executing = self._start(group, "executor", self.executor.run())
            background = [
                self._start(group, "reporter", self.reporter.run()),
                self._start(group, "journal", self.journal.run()),
                *(self._keep(group, name, work) for name, work in self._background_work().items()),
            ]
            if self.engine_controller:
                engine = self.supervise("engine", self.engine_controller.run)
                background.append(self._start(group, "engine", engine))
            await self.ticker.begun.wait()
            background.append(self._start(group, "health", self._be_ready(ready)))
            await stop.wait()  # which may come while a service can't serve
            self._stopping, self._state = True, "stopping"
            self.parts.service_manager.stopping()
            await cancel_and_wait(*sources)
            self.processes.close()
            self.ticker.stop()
            await ticking
            # Let running effects end within the grace period; the next start settles the others.
            self.executor.stop()
            grace = self.parts.current_settings().daemon.stop_grace / US_PER_SECOND
            await asyncio.wait([executing], timeout=grace)
            self.executor.workers.cancel()
            await executing
            await cancel_and_wait(*background)
        await self._end()

    async def _begin(self, restored: Callable[[], None]) -> None:
        p = self.parts
        settings, progressed = p.current_settings(), p.service_manager.extend_timeout
        before = await restore_state(p.log, p.vitals, p.checkpoints, p.view, settings, progressed)
        self.ticker.resume(before)
        await self.incidents.load()
        restored()
        self.journal.is_standing = p.view().conditions[UNWRITTEN] is not None
        self.journal.is_gone = p.view().conditions[GONE] is not None
        self.event_durations.begin(p.view())
        for listener in (
            p.view.on_events,
            self.executor.on_events,
            self.processes.on_events,
            self.garbage_collection.on_events,
            self._on_events,
            self.event_durations.on_events,
        ):
            p.log.listen(listener)
        for listener in (p.view.add_provisional, self.executor.on_events, self.processes.on_events):
            self.journal.listen_to_provisional(listener)
        self.journal.listen_to_left_out(p.view.forget_provisional)
        self.journal.listen_once(self.ticker.waker.on_events)
        if self.engine_controller:
            p.log.listen(self.engine_controller.on_events)
        now = p.clock.now()
        self._since = iso(now.at)
        self.watch.remember(await p.vitals.recent(now.at - WINDOW_US))
        self.budget.begin()
        started = DaemonStarted(pid=p.pid, version=p.version, last_seen=await self._last_seen(before))
        # They may have been cut to a good half while no daemon ran.
        loaded = p.current_settings.loaded(p.view().control.processes)
        await self.journal.append_or_hold(*p.news, Draft(started), loaded)
        await self._enter_safe_mode()
        self._watch_all()
        # So that no rule decides by an old state of the processes.
        await self.watch.collect_once(self.processes)

    async def _last_seen(self, before: Snapshot | None) -> int:
        """When the daemon before this one was last seen (UTC microseconds), if it has ended without a stop.

        before: of the last tick.
        """
        control = self.parts.view().control
        if control.started is None or control.stopped:
            return 0
        known = before.now.at if before else control.started.at
        samples = await self.parts.vitals.recent(known)
        return max([known, *(sample.moment.at for sample in samples)])

    # Safe mode

    async def _enter_safe_mode(self) -> None:
        """Leave out what may have crashed the daemons before this one, if they crashed again and again."""
        state = self.parts.view()
        if left := left_out(state.control.crashes, self._optional_parts()):
            drafts: list[Draft] = [Draft(SafeModeEntered(crashes=state.control.crashes, left_out=left))]
            if OPTIONAL_WATCHERS in left:
                # What nobody looks at would stand for ever, and an outage hold back notices and restarts.
                gone = tuple(name for one in self.parts.optional_watchers for name in conditions_of(one))
                cleared = ConditionCleared(evidence=f"it is {NOT_WATCHED}", unwatched=True)
                drafts += [Draft(cleared, name) for name in state.conditions.raised if name.startswith(gone)]
            await self.journal.append_or_hold(*drafts)
        elif state.control.left_out:
            await self.journal.append_or_hold(Draft(SafeModeLeft(why="there is nothing left to leave out")))

    def _optional_parts(self) -> Sequence[str]:
        """What safe mode could leave out, in its order."""
        p, parts = self.parts, []
        if p.engine and p.current_settings().engine.enabled and p.view().engine.disabled is None:
            parts += [PLUGINS, ENGINE] if p.engine.without_plugins else [ENGINE]
        return [*parts, OPTIONAL_WATCHERS] if p.optional_watchers else parts

    def _watch_all(self) -> None:
        """Run the optional watchers, unless safe mode leaves them out or they are run."""
        if not self._watches_all and OPTIONAL_WATCHERS not in self.parts.view().control.left_out:
            self._watches_all = True
            self.watch.add(self.parts.optional_watchers)

    async def _be_ready(self, ready: Callable[[], None]) -> None:
        """Say that it is ready once every service serves, then prove its health."""
        for begun in self._begun.values():
            await begun.wait()
        if not self._stopping:
            self._state = "running"
            self.parts.service_manager.ready()
            ready()
        await self._supervised("health", self._prove_health)

    async def _prove_health(self) -> None:
        """Record that the loops have turned for a minute; after an hour, leave safe mode."""
        while not await self.is_turning(HEALTHY / US_PER_SECOND):
            pass
        await self.reporter.record("daemon", Draft(DaemonHealthy()))
        await asyncio.sleep((EPISODE - HEALTHY) / US_PER_SECOND)
        if self.parts.view().control.left_out:
            words = "the daemon has run for an hour without what was left out"
            await self.reporter.record("daemon", Draft(SafeModeLeft(why=words)))
        await asyncio.Event().wait()  # a loop of the daemon never returns

    def _sources(self) -> Mapping[str, Work]:
        services = {
            name: partial(service, self.request_handler, self._begun[name].set)
            for name, service in self.parts.services.items()
        }
        return {"reload": self._reload, **services}

    def _background_work(self) -> Mapping[str, Work]:
        return {
            "housekeeping": self.housekeeping.run,
            "incidents": self.incidents.run,
            "tidying": self.garbage_collection.run,
            "heartbeat": self._heartbeat,
        }

    def _keep(self, group: asyncio.TaskGroup, name: str, work: Work) -> asyncio.Task[None]:
        """Start a loop that survival does without: where it fails that is an error, and it is begun again."""
        return self._start(group, name, self._supervised(name, work))

    async def _supervised(self, name: str, work: Work) -> None:
        await LoopSupervisor(partial(self.reporter, "daemon")).run(name, work)

    def _start(self, group: asyncio.TaskGroup, name: str, work: Awaitable[None]) -> asyncio.Task[None]:
        return group.create_task(self._owned(name, work), name=name)

    async def _owned(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # A TaskGroup passes over it, and the daemon would go on without this loop.
            raise RuntimeError(f"the loop {name!r} was cancelled by its own work") from None
        if not self._stopping:
            raise RuntimeError(f"the loop {name!r} returned unasked")

    async def _end(self) -> None:
        p = self.parts
        if delays := self.delays.end(p.clock.now()):
            await self.reporter.record("daemon", *delays)
        await self.reporter.record("daemon", *self.reporter.rest())
        await self.journal.append_or_hold(Draft(DaemonStopped(pid=p.pid, reason="asked to stop")))
        await self.journal.leave()
        await self.housekeeping.keep()
        with suppress(PulseError):  # its disk fails, and the next start folds them anew
            await self.incidents.save()
        await p.vitals.flush()

    # Signs of life

    async def _heartbeat(self) -> None:
        """Notify the service manager's watchdog for ever, only while the loops make progress."""
        seconds = self.parts.service_manager.watchdog_seconds()
        if seconds is None:
            await asyncio.Event().wait()  # the service manager has no watchdog for us
            return
        while True:
            if await self.is_turning(seconds / 4):
                self.parts.service_manager.watchdog()

    async def is_turning(self, seconds: float) -> bool:
        """Whether the tick and the executor loop make progress within these seconds; returns after them."""
        ticks, rounds = self.ticker.beats, self.executor.beats
        self.ticker.waker.ping()
        self.executor.nudge()
        await asyncio.sleep(seconds)
        return self.ticker.beats > ticks and self.executor.beats > rounds

    # Requests

    def _on_events(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == ReloadRequested.kind:
                self._requests.put_nowait(event)
            elif event.kind in LEAVING:
                self._watch_all()

    def request_reload(self) -> None:
        """Request that the settings are read again; for a signal's handler, so it returns at once."""
        self._requests.put_nowait(None)

    async def _reload(self) -> None:
        while True:
            waiting = [await self._requests.get()]
            while not self._requests.empty() and len(waiting) < MOST_RELOADS:
                waiting.append(self._requests.get_nowait())
            if None in waiting:
                await self.reporter.record("daemon", Draft(ReloadRequested()))  # so the request is made again
            if not (requests := [request for request in waiting if request]):
                continue
            is_ready = self._state == "running"  # else what ends a reload would say that the start has ended
            if is_ready:
                self.parts.service_manager.reloading()
            await self.reporter.record("daemon", *await self.parts.current_settings.reload(requests))
            if is_ready:
                self.parts.service_manager.ready()
            self.processes.nudge.set()
            for watcher in (*self.parts.watchers, *self.parts.optional_watchers):
                watcher.nudge.set()
            if self.engine_controller:
                self.engine_controller.nudge()
            await asyncio.sleep(RELOAD_PAUSE)

    def report(self) -> HomeStatus:
        """The status of the home at this moment."""
        p = self.parts
        daemon: DaemonStatus = {
            "state": self._state,
            "pid": p.pid,
            "since": self._since,
            "version": p.version,
        }
        beat = Beat(self.ticker.number, tuple(self.ticker.took_us))
        newest = {key: last for key, window in self.watch.windows.items() if (last := window.last)}
        look = self.watch.newest(ProcessAlive.key)
        looked = look.moment if look else None
        whole = compute_status(p.current_settings(), p.view(), p.clock.now(), beat, daemon, newest, looked)
        for process in whole["processes"]:
            process["held"] = self.delays.of(RestartDelayed, process["name"])
        for condition in whole["conditions"]:
            condition["held"] = self.delays.of(AnswerDelayed, condition["name"])
        whole["notices"]["faults"] = p.notice_faults()
        whole["held_back"], whole["raising"] = self.ticker.held_back, self.ticker.raising
        whole["set_aside"] = {**whole.get("set_aside", {}), **self.ticker.folding.left_out}
        whole["tick"]["durations"] = self.ticker.durations.spelled()
        whole["log"]["left_out"] = self.journal.left_out
        whole["log"]["held"] = held = self.journal.held
        whole["log"]["unwritten"] = sum(held.values())
        whole["log"]["refusing"] = self.journal.refusing
        whole["samples_lost"], whole["outputs_lost"] = p.vitals.trouble, p.outputs_lost()
        whole["engine"] = self.engine_controller.report() if self.engine_controller else None
        if missing := p.view().conditions[ENGINE_MISSING]:
            whole["engine"] = {
                **NO_HOST,
                **(whole["engine"] or NO_HOST),
                "degraded": True,
                "gone": missing.evidence,
            }
        whole["shed"] = self.budget.report()
        whole["since_start"] = self.event_durations.report()
        now, costs = asyncio.get_running_loop().time(), self.watch.costs.of
        whole["watchers"] = [
            watcher_status(one, costs.get(one.name, Cost()), now) for one in self.watch.watchers
        ]
        return whole


async def cancel_and_wait(*tasks: asyncio.Task[None]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
