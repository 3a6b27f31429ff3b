"""Runs a host with the revision in force, and changes the revision on request."""

import asyncio
from collections.abc import Sequence

from pulse_core.engine.engine_context import EngineContext, EngineParts, Running
from pulse_core.engine.host_supervisor import HostSupervisor, loop_seconds
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.model.event import Draft, Event
from pulse_core.model.home_status import EngineHostStatus
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    EffectCancelRequested,
    EngineChangeStarted,
    EngineEnabled,
    EngineLoaded,
    EnginePromoted,
    EngineRolledBack,
    PromoteRefused,
    PromoteRequested,
    SafeModeLeft,
)
from pulse_core.model.moment import iso
from pulse_core.model.names import ENGINE, PLUGINS
from pulse_core.model.stored_data import REDACTED
from pulse_core.ports.engine import EngineFault, Revision
from pulse_core.ports.loops import is_cancelled
from pulse_core.projections.conditions import SET_ASIDE
from pulse_core.projections.effects import Phase
from pulse_core.projections.engine import OWN, Engine

KEEP_EVERY, LOOK = 60.0, 1.0
"""Seconds between two checkpoints of the engine's own projections, and between two attempts while no host is up."""
CRASHED = "the daemon was killed or crashed while it carried this out, which is not tried again; look why, then ask again"
RUNNING_AGAIN = frozenset({EngineEnabled.kind, SafeModeLeft.kind})
WAKING = OWN | RUNNING_AGAIN
NO_HOST: EngineHostStatus = {
    "commit": None,
    "runs": None,
    "rules": [],
    "watchers": [],
    "executors": [],
    "quarantined": {},
    "sandbox": {},
}
"""The status of an engine that has no controller."""


class EngineController:
    """The engine, from the daemon's side. `run` starts hosts and answers requests; ticks call `host_supervisor.fold`.

    The log is the truth: what it calls promoted is in force, and `main` follows it. set_aside: why no host runs until
    another commit is in force, it is enabled, or the settings are read again; empty as nearly always.
    """

    def __init__(self, parts: EngineParts, context: EngineContext) -> None:
        self.parts, self.context = parts, context
        self.host_supervisor = HostSupervisor(parts, context)
        self.instead_of = self.set_aside = ""
        self._is_starting = True
        self._woken = self.host_supervisor.ended
        self._changing = asyncio.Lock()
        self._aligned = "", 0.0
        """The commit that `main` was to be pointed at, and the loop's time from which that is tried again."""
        self._told: tuple[str, str] | None = None
        self._started: set[str] = set()
        """The requests that this daemon began to carry out; any other that was begun ended an earlier one."""

    @property
    def engine(self) -> Engine:
        """The engine's projection."""
        return self.context.current_state().engine

    @property
    def is_wanted(self) -> bool:
        """Whether its code is to be run: by the settings, by people, as safe mode has it, and as its loops did."""
        state = self.context.current_state()
        is_enabled = self.context.settings().engine.enabled and state.engine.disabled is None
        return is_enabled and ENGINE not in state.control.left_out and not self.set_aside

    def on_events(self, events: Sequence[Event]) -> None:
        """Take recorded events; a listener of the log."""
        if any(event.kind in RUNNING_AGAIN for event in events):
            self.set_aside = ""
        if any(event.kind in WAKING for event in events):
            self._woken.set()
        self.host_supervisor.on_events(events)

    def nudge(self) -> None:
        """Check again at once: the settings may have changed."""
        self.set_aside = ""
        self._woken.set()

    def report_loop(self, words: str) -> None:
        """Take a failure of a loop that serves the engine."""
        running = self.host_supervisor.running
        commit = running.commit if running else self.engine.commit
        self.host_supervisor.report_fault(EngineFault("engine", words), commit)

    def put_aside(self, why: str) -> None:
        """Run no host from now on."""
        self.set_aside = why
        self._woken.set()

    async def run(self) -> None:
        """Run the host and answer requests, for ever."""
        try:
            while True:
                await self._round()
                await self._pause()
        finally:
            try:
                await self.host_supervisor.save_user_projections()
            finally:
                await self.host_supervisor.close()

    async def _round(self) -> None:
        self._woken.clear()
        async with self._changing:
            try:
                if self.engine.commit:  # first: what is in force may be what somebody wants to go back from
                    await self._answer_requests()
                await self._ensure_host()
                self._is_starting = False
                await self._tell_set_aside()
                await self._answer_requests()
                await self._align()
                await self.host_supervisor.record_reports()
            except PulseError as error:
                self._is_starting = False
                self.context.failed("engine", str(error))
                self.host_supervisor.restarts.failed(loop_seconds())

    async def _pause(self) -> None:
        is_waiting = self.host_supervisor.is_down and self.is_wanted
        try:
            async with asyncio.timeout(LOOK if is_waiting else KEEP_EVERY):
                await self._woken.wait()
        except TimeoutError:
            await self.host_supervisor.save_user_projections()

    # The host

    async def _ensure_host(self) -> None:
        """Start a host if none runs and its backoff is over, or it lacks the plugins that safe mode left out.

        One whose commit was taken back goes: the rollback was recorded after whoever waited for that was cancelled.
        """
        host_supervisor = self.host_supervisor
        running = host_supervisor.running
        if running and not self.instead_of and self.engine.is_taken_back(running.commit):
            await host_supervisor.close()
            running = None
        if not self.is_wanted:
            await host_supervisor.close()  # nothing of it, nor of one before it, goes on
        elif running and running.host.alive and running.parts is not host_supervisor.current_parts:
            async with host_supervisor.others_frozen():
                revision = await self._export(running.commit)
                await host_supervisor.switch_to(await host_supervisor.start_host(revision))
        elif host_supervisor.is_down:
            if host_supervisor.running:
                host_supervisor.report_end(host_supervisor.running)
                host_supervisor.restarts.ended(loop_seconds())
                await host_supervisor.close()  # also what others are still at: that may be what has ended it
            if loop_seconds() >= host_supervisor.restarts.due:
                self._is_starting = True
                await self._begin()

    async def _tell_set_aside(self) -> None:
        """Raise the condition that says so, or clear it, unless that was done."""
        is_raised = self.context.current_state().conditions[SET_ASIDE] is not None
        if self.set_aside and not is_raised:
            raised = ConditionRaised(evidence=f"{self.engine.commit[:12]} was set aside: {self.set_aside}")
            await self._record(raised, SET_ASIDE)
        elif is_raised and not self.set_aside and not self.host_supervisor.is_down:
            running = self.host_supervisor.running
            words = f"{running.commit[:12]} runs" if running else "it runs"
            await self._record(ConditionCleared(evidence=words), SET_ASIDE)

    async def _begin(self) -> None:
        """Start a host with the commit in force, or else with an earlier good one; if none loads, without plugins."""
        host_supervisor = self.host_supervisor
        host_supervisor.plugins_fault = ""
        wanted = self.engine.commit or await self.parts.revisions.head()
        if not (why := await self._load_any(wanted)):
            return
        if host_supervisor.current_parts.without_plugins:
            host_supervisor.plugins_fault = why
            if not await self._load_any(wanted):
                words = f"no revision can be loaded with them, so it runs without: {why}; see: upulse plugins"
                self.context.failed(PLUGINS, words)
                return
            host_supervisor.plugins_fault = ""
        await host_supervisor.retire()  # so that effects for its executors do not wait for ever
        raise PulseError(f"no revision of the engine can be loaded, nor {wanted[:12]}: {why}")

    async def _load_any(self, wanted: str) -> str:
        """Start a host with this commit, or else with an earlier good one; why that is not possible, or nothing."""
        engine, why = self.engine, ""
        for commit in dict.fromkeys(filter(None, (wanted, engine.good, engine.previous, engine.replaced))):
            began = loop_seconds()
            try:
                revision = await self._export(commit)
                await self.host_supervisor.switch_to(
                    running := await self.host_supervisor.start_host(revision)
                )
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, an earlier one may be sound
                why = why or describe_error(error)
                continue
            await self._say_loaded(wanted, running, why, round((loop_seconds() - began) * 1000))
            if self.instead_of and engine.is_on_probation(self.context.last_snapshot().now):
                await self._go_back(running.commit, f"it can't be loaded: {why}", "pulse")
            return ""
        return why

    async def _export(self, commit: str) -> Revision:
        """The commit's export; reports if its files had been changed and were made anew."""
        revision = await self.parts.revisions.ensure(commit)
        if revision.altered:
            self.context.failed("engine", f"the files of {commit[:12]} had been changed after they were laid out; they "
                               f"are made anew, and what was found lies in {revision.altered}")  # fmt: skip
        return revision

    async def _say_loaded(self, wanted: str, running: Running, why: str, took_ms: int) -> None:
        """Record which commit runs, if that has changed; the very first commit counts as promoted."""
        self.instead_of = wanted if running.commit != wanted else ""
        if self.instead_of:
            self.context.failed("engine", f"{wanted[:12]} can't be loaded, {running.commit[:12]} runs: {why}")
        elif not self.engine.commit:
            first = PromoteRequested(previous="", why="the first one")
            await self._record(self._promoted(first, running), running.commit)
        if self._told != (told := (wanted, running.commit)):
            self._told = told
            loaded = EngineLoaded(
                rules=running.host.loaded.rules, instead_of=self.instead_of, why=why, took_ms=took_ms
            )
            await self._record(loaded, running.commit)

    # Requests

    async def _answer_requests(self) -> None:
        for request in tuple(self.engine.requests.values()):
            await self._answer(request)

    async def _answer(self, request: Event) -> None:
        """Carry out a person's request, or record why not; nothing but a kill may leave it unanswered.

        That it begins is recorded first: if the daemon crashes in it, the next one refuses it, since it may be why.
        """
        is_new = request.id not in self._started
        why = CRASHED if is_new and request.id in self.engine.started else refusal(request, self.engine)
        try:
            if not why and is_new:
                await self.context.log.append(Draft(EngineChangeStarted(), subject=request.id))
                self._started.add(request.id)
            if not why and isinstance(asked := request.payload, PromoteRequested):
                await self._promote(request, asked)
            elif not why:
                words = str(getattr(request.payload, "why", ""))
                await self._go_back(target_of(request, self.engine), words, request.actor, request.id)
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled() or request.id not in self.engine.requests:
                raise
            why = describe_error(error)
        if why:
            await self._record(PromoteRefused(why=why), request.subject, request.id)

    async def _promote(self, request: Event, asked: PromoteRequested) -> None:
        async with self.host_supervisor.others_frozen():
            running = await self.host_supervisor.start_host(await self._export(request.subject))
            await self._turn(
                running.commit, running, self._promoted(asked, running, request.actor), request.id
            )

    async def roll_back(self, to: str, reject: str, why: str, by: str = "pulse") -> str:
        """Put an earlier commit in force again; returns the new commit that does so. Raises PulseError."""
        async with self._changing:
            if self.engine.commit != reject:
                raise PulseError(f"{reject[:12]} is not in force any more; {self.engine.commit[:12]} is")
            return await self._go_back(to, why, by)

    async def _go_back(self, to: str, why: str, by: str, cause: str | None = None) -> str:
        rejected = self.engine.commit
        async with self.host_supervisor.others_frozen():
            revision, branch = await self.parts.revisions.going_back(to, rejected, why)
            rolled = EngineRolledBack(rejected=rejected, to=to, why=why, asked_by=by, kept_as=branch)
            # What is not to be run is not loaded either: that may be what crashes the daemon again and again.
            running = await self.host_supervisor.start_host(revision) if self.is_wanted else None
            await self._turn(revision.commit, running, rolled, cause)
        return revision.commit

    async def _turn(
        self,
        commit: str,
        running: Running | None,
        what: EnginePromoted | EngineRolledBack,
        cause: str | None,
    ) -> None:
        """Record it, then do it: if it can't be recorded, nothing changes. running: its host, if it is to run."""
        taken_back = self._taken_back(what) if isinstance(what, EngineRolledBack) else ()
        try:
            await self.context.log.append(Draft(what, subject=commit, cause=cause), *taken_back)
        except BaseException:
            if running:
                await running.end()
            raise
        if running:
            try:
                await self.host_supervisor.switch_to(running, takes_back=isinstance(what, EngineRolledBack))
            except BaseException:
                # Its commit is not in force any more; what is, is begun anew.
                await self.host_supervisor.close()
                raise
        self.host_supervisor.restarts.ends = 0  # those were of another commit
        self.instead_of, self.set_aside = "", ""
        self._told = (commit, commit) if running else None
        self._woken.set()  # `main` is to follow

    def _taken_back(self, what: EngineRolledBack) -> Sequence[Draft]:
        """Requests to cancel what the rules of the commits that are taken back have wished for, and is not begun."""
        state = self.context.current_state()
        commits = {what.rejected, *state.engine.later_than(what.to)}
        return [
            Draft(
                EffectCancelRequested(why=f"{commit[:12]}, whose rules wished for it, was taken back"), one.id
            )
            for one in state.effects.open.values()
            if one.phase is not Phase.EXECUTING and (commit := one.commit) in commits
        ]

    def _promoted(self, asked: PromoteRequested, running: Running, by: str = "") -> EnginePromoted:
        return EnginePromoted(
            previous=asked.previous,
            watch_us=self.context.settings().engine.watch,
            asked_by=by,
            why=asked.why,
            gates=asked.gates,
            changes=asked.changes,
            changed=asked.changed,
            projections=dict(running.host.loaded.projections),
        )

    async def _align(self) -> None:
        """Point `main` at the commit that the log names, again and again where git can't: it may be able to later.

        They differ after a kill between the two, too.
        """
        engine, (commit, again) = self.engine, self._aligned
        if not engine.commit or (engine.commit == commit and loop_seconds() < again):
            return
        self._aligned = engine.commit, loop_seconds() + KEEP_EVERY
        try:
            stray = await self.parts.revisions.point_main(engine.commit, engine.replaced or engine.commit)
        except Exception as error:  # noqa: BLE001 - whatever git lacks at this moment, what is in force is not at fault
            self.context.failed("engine", describe_error(error))
        else:
            self._aligned = engine.commit, float("inf")
            if stray:
                words = f"engine/ holds the files of {engine.commit[:12]} now"
                self.context.failed(
                    "engine", f"{words}; what was changed there by hand is in the branch {stray}"
                )

    async def _record(
        self,
        what: EngineLoaded | EnginePromoted | PromoteRefused | ConditionRaised | ConditionCleared,
        subject: str,
        cause: str | None = None,
    ) -> None:
        await self.host_supervisor.record(Draft(what, subject=subject, cause=cause))

    def report(self) -> EngineHostStatus:
        """The engine's status, for `upulse status`."""
        running, engine = self.host_supervisor.running, self.engine
        loaded = running.host.loaded if running else None
        return {
            "commit": engine.commit or None,
            "runs": running.commit if running and running.host.alive else None,
            "starting": self._is_starting and self.is_wanted and self.host_supervisor.is_down,
            "degraded": bool(self.instead_of),
            "set_aside": self.set_aside or None,
            "rules": list(loaded.rules) if loaded else [],
            "watchers": list(loaded.watchers) if loaded else [],
            "executors": list(loaded.executors) if loaded else [],
            "quarantined": dict(engine.quarantined),
            "errors": len(engine.errors),
            "rolled_back": iso(engine.rolled_back.at) if engine.rolled_back else None,
            "sandbox": running.sandbox if running else {},
            "missing": dict(loaded.missing) if loaded else {},
            "without_plugins": self.host_supervisor.plugins_fault or None,
            "restarts": self.host_supervisor.restarts.count,
            "requests": len(engine.requests),
            "disabled": engine.disabled_status(),
            "left_out": ENGINE in self.context.current_state().control.left_out,
        }


def refusal(request: Event, engine: Engine) -> str:
    """Why a person's request is refused; empty if it is not. Pure."""
    payload = request.payload
    if request.data == REDACTED:
        return "what was asked for was redacted"
    if isinstance(payload, PromoteRequested):
        if request.seq < engine.disabled_seq:
            return (
                f"{engine.disabled_by} disabled the engine after this was asked for; promote again to run it"
            )
        # Nothing is in force in a home whose first daemons were in safe mode: then the author saw main, and may go on.
        if engine.commit and payload.previous != engine.commit:
            return f"another commit is in force by now ({engine.commit[:12]}); look at it, and promote again"
        return f"{engine.commit[:12]} is in force already" if request.subject == engine.commit else ""
    if not (target := target_of(request, engine)):
        return "there is no earlier commit to go back to"
    return f"{target[:12]} is in force already" if target == engine.commit else ""


def target_of(request: Event, engine: Engine) -> str:
    """The commit that a rollback goes to: the named one, else the previous one; empty without one."""
    return request.subject or engine.previous
