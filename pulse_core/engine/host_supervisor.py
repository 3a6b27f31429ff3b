"""Supervises the host of the engine's rules: feeds it with the log, calls it at each tick, replaces it without a gap.

Theory of the swap. A promote or rollback must miss no tick and no event, and may fail at any point before it is recorded.

1. `start_host` starts a second host with the new commit, from the newest snapshot that the whole onion has seen
   (`Running.seq` is its row). The old host goes on answering. If loading fails, the new one is closed: nothing changed.
2. The caller records `promote` or `rollback`. From here on the log says that the new commit is in force; a daemon that
   is killed now starts with it.
3. `switch_to` feeds the new host what was recorded since its snapshot. Reading awaits, so more is recorded meanwhile:
   those events are collected in `_late` and fed afterwards, each once, by `seq`. Between the last of them and the
   assignment of `running` nothing is awaited, so no event falls between the two hosts, and none reaches one twice.
4. The executors of the new commit are registered before its rules can wish for them. A fold that is under way keeps its
   reference to the old host and is answered by that one; then the old host is closed. After a promote its action host
   is retired, not closed: what it is doing is finished first, if that takes no longer than the daemon's own stop would
   wait for it. A commit that is rolled back has no such time.

All hosts and git have one user, and whoever has a user may end all of its processes. So all of this is done in
`others_frozen`: what runs of watchers and executors stands still until the new host has taken over, and then goes on
or is ended. Rules can't signal anybody.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pulse_core.engine import user_checkpoints
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.engine.engine_context import EngineContext, EngineParts, Running, restarts
from pulse_core.engine.record_limit import RecordLimit
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import ErrorReported, RuleQuarantined
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import PLUGINS
from pulse_core.model.secret_text import hide_secrets
from pulse_core.ports.engine import ActionHost, ActionHosts, EngineFault, FoldResult, LoadedRevision, Revision
from pulse_core.projections.engine import Engine, fault_words
from pulse_core.projections.state import Snapshot

LOG = logging.getLogger("pulse.error")
PAUSE = 1.0
"""Seconds between two records of the same error."""
MAX_REMEMBERED = 200
"""The most errors that are remembered."""
MOST_A_SECOND = 10
"""Errors of one commit that are recorded in a second; the others are counted, and told of together."""
Key = tuple[str, str, str, bool]


@dataclass
class _ThrottledError:
    at: float
    held: int = 0
    message: str = ""
    logged: bool = False

    def is_due(self, now: float) -> bool:
        return now - self.at >= PAUSE


@dataclass
class _CommitSecond:
    """What was recorded of a commit's errors since a moment, and how many were left out."""

    began: float
    recorded: int = 0
    left_out: int = 0


@dataclass
class ErrorThrottle:
    """Survival rolls a promote back by these errors, so each must be counted in the log soon."""

    said: dict[Key, _ThrottledError] = field(default_factory=dict)
    seconds: dict[str, _CommitSecond] = field(default_factory=dict)

    def take(self, faults: Iterable[EngineFault], commit: str, now: float, ended: bool = False) -> None:
        """Count faults of a commit's code; ended: whether its host has ended."""
        for fault in faults:
            key = (fault.whose, fault_words(fault.message), commit, ended)
            if key not in self.said and self._has_room(now):
                self.said[key] = _ThrottledError(now - PAUSE)
            if said := self.said.get(key):
                said.held, said.message = said.held + 1, fault.message
            else:
                self._second_of(commit, now).left_out += 1

    def _second_of(self, commit: str, now: float) -> _CommitSecond:
        return self.seconds.setdefault(commit, _CommitSecond(now))

    def _has_room(self, now: float) -> bool:
        if len(self.said) >= MAX_REMEMBERED:
            self.said = {key: one for key, one in self.said.items() if one.held or not one.is_due(now)}
        return len(self.said) < MAX_REMEMBERED

    def due(self, now: float) -> list[Draft]:
        """The drafts to record now; of each error at most one a second, with the count of repetitions.

        Of a commit with more than may be recorded those come first that were recorded longest ago; the others have one
        draft together, which is no further error of the commit.
        """
        drafts = [*self._left_out(now)]
        for (whose, _, commit, ended), one in sorted(self.said.items(), key=lambda said: said[1].at):
            if not one.held or not one.is_due(now):
                continue
            second = self._second_of(commit, now)
            if second.recorded < MOST_A_SECOND:
                message = hide_secrets(one.message)
                if not one.logged:  # once: the events count the others
                    LOG.warning("%s: %s", whose, message)
                    one.logged = True
                error = ErrorReported(message=message, repeats=one.held - 1, commit=commit, ended=ended)
                drafts.append(Draft(error, subject=whose))
                second.recorded, one.at = second.recorded + 1, now
            else:
                second.left_out += one.held
            one.held = 0
        return drafts

    def _left_out(self, now: float) -> Iterator[Draft]:
        """What is to be said of seconds that are over."""
        over = {commit: one for commit, one in self.seconds.items() if now - one.began >= PAUSE}
        for commit, one in over.items():
            del self.seconds[commit]
            if one.left_out:
                words = f"{one.left_out:,} more errors of {commit[:12]} within a second are not recorded one by one"
                yield Draft(ErrorReported(message=words), subject="engine")


class HostSupervisor:
    """Runs one host, or none. ended: set when it can fold no more, or there is something to report.

    plugins_fault: why hosts are started without plugins, if no commit can be loaded with them.
    """

    def __init__(self, parts: EngineParts, context: EngineContext) -> None:
        self.parts, self.context = parts, context
        self.running: Running | None = None
        self.plugins_fault = ""
        self.restarts = restarts()
        self.ended = asyncio.Event()
        self._errors = ErrorThrottle()
        self._record_limit = RecordLimit()
        self._former: set[ActionHost] = set()
        self._late: list[Event] | None = None

    @property
    def current_parts(self) -> EngineParts:
        """What starts hosts now: plugins may be left out, by safe mode or since no host starts with them."""
        is_without = self.plugins_fault or PLUGINS in self.context.current_state().control.left_out
        return (is_without and self.parts.without_plugins) or self.parts

    @property
    def is_down(self) -> bool:
        """Whether no host can fold."""
        return self.running is None or not self.running.is_up

    def on_events(self, events: Sequence[Event]) -> None:
        """Pass recorded events on; a listener of the log."""
        if running := self.running:
            try:
                running.host.feed(events)
            except Exception as error:  # noqa: BLE001 - the events are on disk, whatever a host makes of them
                running.is_behind = running.is_end_reported = True
                self.report_fault(
                    EngineFault("engine", f"its host can't be fed: {error!r}"), running.commit, True
                )
        if self._late is not None:
            self._late.extend(events)

    # Called by ticks

    async def fold(self, prev: Snapshot, curr: Snapshot) -> FoldResult:
        """Fold this snapshot through the engine's rules; an empty result while no host runs. Never raises."""
        running = self.running
        if running is None or not running.is_up:
            self.ended.set()
            return FoldResult()
        async with running.lock:
            folded = await running.host.fold(prev, curr)
        if self._engine.is_taken_back(running.commit):
            return FoldResult()
        fold_result = filter_effects(folded, curr, running.host.defined)
        running.is_end_reported = not running.host.alive and bool(fold_result.faults)
        await self._judge(running, fold_result, curr)
        if not running.host.alive:
            self.ended.set()
        layers = self._record_limit.bounded(fold_result.layers, loop_seconds())
        return fold_result._replace(commit=running.commit, layers=layers)

    async def _judge(self, running: Running, fold_result: FoldResult, curr: Snapshot) -> None:
        engine, settings, ended = curr.engine, curr.settings.engine, running.is_end_reported
        faults = fold_result.faults
        self._errors.take(faults, running.commit, loop_seconds(), ended)
        drafts = self._errors.due(loop_seconds())
        if engine.is_on_probation(curr.now):  # survival handles the errors that the promote has brought
            faults = tuple(one for one in faults if engine.is_excused(*one, ended))
        running.quarantine.observe(fold_result.layers, faults, settings.deadline)
        bad = running.quarantine.verdicts(settings.quarantine)
        for rule in bad.keys() - engine.quarantined.keys() if running.commit == self._engine.commit else ():
            drafts.append(Draft(RuleQuarantined(commit=running.commit, why=bad[rule]), subject=rule))
        if drafts and await self.record(*drafts) and running is self.running:
            running.host.quarantine(tuple(self._engine.quarantined))

    # What goes wrong between ticks

    def report_watcher_fault(self, whose: str, message: str) -> None:
        """Take a fault of one of the engine's watchers."""
        self.report_fault(EngineFault(whose, message), self.running.commit if self.running else "")

    def report_end(self, running: Running) -> None:
        """Report that a host has ended, unless that was done."""
        if not running.is_end_reported:
            running.is_end_reported = True
            self.report_fault(EngineFault("engine", "its host ended between two ticks"), running.commit, True)

    def report_fault(self, fault: EngineFault, commit: str, ended: bool = False) -> None:
        """Take a fault of a commit's code: during probation each is counted, later it is reported once."""
        engine = self._engine
        if commit == engine.commit and engine.is_on_probation(self.context.last_snapshot().now):
            self._errors.take((fault,), commit, loop_seconds(), ended)
            self.ended.set()
        else:
            self.context.failed(fault.whose, fault.message, commit, ended)

    async def record_reports(self) -> None:
        """Record the faults that were taken between ticks."""
        if drafts := self._errors.due(loop_seconds()):
            await self.record(*drafts)

    async def record(self, *drafts: Draft) -> bool:
        """Record drafts about the engine; returns whether that was possible."""
        try:
            await self.context.log.append(*drafts)
        except PulseError as error:
            self.context.failed("engine", f"{drafts[0].payload.kind} could not be recorded: {error}")
            return False
        return True

    @property
    def _engine(self) -> Engine:
        return self.context.current_state().engine

    # One after the other

    async def start_host(self, revision: Revision) -> Running:
        """Start a host with this revision; the present one goes on meanwhile. Raises PulseError."""
        kept = await user_checkpoints.load(self.context.log, self.context.checkpoints)
        prev, parts = self.context.last_snapshot(), self.current_parts
        host = await parts.hosts.start(revision, prev, self.context.log.since, kept)
        engine = self._engine
        host.quarantine(tuple(engine.quarantined) if revision.commit == engine.commit else ())
        try:
            action_host = await self._start_action_host(parts.action_hosts, revision, host.loaded)
        except BaseException:
            await host.close()
            raise
        return Running(host, revision.commit, prev.state.seq, parts, action_host)

    async def _start_action_host(
        self, hosts: ActionHosts | None, revision: Revision, loaded: LoadedRevision
    ) -> ActionHost | None:
        """Start the action host for the revision's watchers and executors; None if it has none."""
        if hosts is None or not (loaded.watchers or loaded.executors):
            return None
        memory = self.context.settings().engine.memory
        action_host = await hosts.start(
            revision, memory, self.context.taken, lambda fault: self.report_fault(fault, revision.commit)
        )
        for fault in action_host.faults:
            self.context.failed(*fault)
        return action_host

    @asynccontextmanager
    async def others_frozen(self) -> AsyncIterator[None]:
        """Inside, no watcher and no executor that runs by now can act against a host that begins."""
        async with AsyncExitStack() as frozen:
            in_force = self.running and self.running.action_host
            for one in (*self._former, *([in_force] if in_force else ())):
                await frozen.enter_async_context(one.frozen())
            yield

    async def switch_to(self, running: Running, *, takes_back: bool = False) -> None:
        """Feed a new host the events since its start, make it the running one, and end the old one: no tick is missed.

        takes_back: what the old one and those before it are at is broken off.
        """
        self._late, old = [], self.running
        try:
            # The log tells of an event a moment after it can be read there: some come twice, and the host takes them once.
            async for events in self.context.log.since(running.seq):
                running.host.feed(events)
            running.host.feed(self._late)
            self._register(
                running.action_host
            )  # first: the new rules may request actions that only these executors have
            self.running = running
        except BaseException:
            await running.end()
            raise
        finally:
            self._late = None
        self.restarts.started(loop_seconds())
        if old:
            if former := old.action_host:
                self._former.add(former)
                grace = 0 if takes_back else self.context.settings().daemon.stop_grace / US_PER_SECOND
                former.retire(grace).add_done_callback(lambda _: self._former.discard(former))
            await old.close()
        if takes_back:
            await asyncio.gather(*(action_host.close() for action_host in self._former))

    async def retire(self) -> None:
        """End the running host."""
        running, self.running = self.running, None
        self._register(None)
        if running:
            await running.end()

    async def close(self) -> None:
        """End everything, also retired action hosts that are not done yet."""
        await asyncio.gather(self.retire(), *(action_host.close() for action_host in self._former))

    def _register(self, action_host: ActionHost | None) -> None:
        self.context.register(
            action_host.watchers if action_host else (), action_host.executors if action_host else {}
        )

    async def save_user_projections(self) -> None:
        """Save checkpoints of the projections that the engine's authors wrote."""
        running = self.running  # another one may run once the lock is free
        if running is None or not running.is_up:
            return
        try:
            async with running.lock:
                kept = await running.host.keep()
            await user_checkpoints.save(self.context.log, self.context.checkpoints, kept)
        except (PulseError, OSError) as error:
            self.context.failed("engine", f"its projections could not be kept: {error}")


def loop_seconds() -> float:
    """The loop's time, seconds."""
    return asyncio.get_running_loop().time()
