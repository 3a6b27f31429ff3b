"""The watcher of guarded processes: holds a pidfd of each, so that a death is noticed within a millisecond."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pulse_core.model.event import Draft, Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect, EffectAcked, ProcessDied, ProcessUp, SettingsLoaded
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import HELD_BACK, RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.text import was_held
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.health import HealthProber
from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.projections.conditions import FOR
from pulse_core.projections.effects import decode_plain_effect
from pulse_core.projections.processes import ProcessHistory
from pulse_core.projections.state import CurrentState
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from pulse_core.watch.evaluate_process import (
    LOG_GAP,
    NO_DAEMON,
    UNGUARDED,
    ProcessProbe,
    believed,
    conclude,
    identity,
    is_up,
    recorded_process,
)
from pulse_core.watch.process_health import ProcessHealth
from pulse_core.watch.process_looks import ProcessLook, ProcessLooks

T = TypeVar("T")

DOUBT_INTERVAL = 0.5
STARTING_INTERVAL = 0.1
SOON = 0.02
SLOWEST, LATE_US, STOOD_STILL_US = 4, 30 * US_PER_SECOND, 5 * US_PER_SECOND
"""How many intervals may lie between two looks, and how late one is that nobody else can be blamed for."""
OTHERS_US = 60 * US_PER_SECOND
"""The time between two searches for those that match beside the process that is known."""
OUTPUTS_S = 0.5
"""Seconds in which the logs of those that died together are read: each death waits for all of them, and a log that does not
answer takes its time. Who comes after that is told without what it printed."""
NUDGING_KINDS = frozenset({EffectAcked.kind, ProcessDied.kind})
SEARCH_KINDS = NUDGING_KINDS | {SettingsLoaded.kind}
"""After these, and after a death, there may be leftovers at once."""
LEFTOVERS_US, SEARCH_PAUSE_US = 60 * US_PER_SECOND, US_PER_SECOND // 2
"""The time between two searches for leftovers otherwise, and at least: each reads the state of every process that bears a
mark, and a death waits for it."""


@dataclass(eq=False)
class ProcessAlive:
    """The watcher `process-alive`: one sample with every guarded process, one event for every change.

    It probes at once when a pidfd fires or a restart was acked, and more often while a state is uncertain. window: its
    own last minute, also of an earlier daemon: what failed in a row then goes on counting.
    """

    name = key = "process-alive"
    timeout = 10.0

    table: ProcessTable
    clock: Clock
    settings: Callable[[], Settings]
    current_state: CurrentState
    prober: HealthProber
    window: Callable[[], Window]
    nudge: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _streaks: dict[str, int] | None = field(default=None, init=False)
    _sights: Mapping[str, ProcessObservation] = field(default_factory=dict, init=False)
    _told: Mapping[str, Json] = field(default_factory=dict, init=False)
    _holders: dict[str, str] = field(default_factory=dict, init=False)
    _starting: bool = field(default=False, init=False)
    _is_whole_due: bool = field(default=False, init=False)
    _leftovers: Mapping[str, tuple[ProcessId, ...]] = field(default_factory=dict, init=False)
    _searched: Moment | None = field(default=None, init=False)
    _concluded: tuple[Moment, int] | None = field(default=None, init=False)
    _needs_search: bool = field(default=False, init=False)
    _others: Mapping[tuple[str, ProcessId | None], str] = field(default_factory=dict, init=False)
    _compared: Moment | None = field(default=None, init=False)
    _search: asyncio.Future[Mapping[str, str]] | None = field(default=None, init=False)
    _restarted_for: dict[str, str] = field(default_factory=dict, init=False)
    """By process, the condition that its last restart was wished for, in words, until its death is recorded: by that time
    the wish may be settled."""
    _to_stop: set[str] = field(default_factory=set, init=False)
    """Those whose newest wish was a stop, likewise."""

    def __post_init__(self) -> None:
        self._looks = ProcessLooks(self.table, self.timeout)
        self.health = ProcessHealth(
            self.prober, lambda: self.settings().watch.process_interval, self.nudge.set
        )

    @property
    def interval(self) -> float:
        """Seconds until the next sample."""
        usual = self.settings().watch.process_interval / US_PER_SECOND
        if (due := self.health.wait_us) is not None:
            usual = min(usual, max(due / US_PER_SECOND, SOON))
        if self._needs_search:
            usual = min(usual, SEARCH_PAUSE_US / US_PER_SECOND)
        if self._is_whole_due:
            return min(usual, SOON)
        if self._starting:
            return min(usual, STARTING_INTERVAL)
        return min(usual, DOUBT_INTERVAL) if any((self._streaks or {}).values()) else usual

    def on_events(self, events: Sequence[Event]) -> None:
        """Probe at once after a restart, or when the death of the replaced process is recorded; a listener of the log."""
        kinds = {event.kind for event in events}
        if not kinds.isdisjoint({Effect.kind, ProcessDied.kind}):
            self._note_wishes(events)
        if not kinds.isdisjoint(SEARCH_KINDS):
            self._needs_search = True
        if SettingsLoaded.kind in kinds:
            self._compared = None
        if not kinds.isdisjoint(NUDGING_KINDS):
            for name, history in self.current_state().processes.of.items():
                if history.starting:
                    self._looks.add_started(name)
                    self.nudge.set()

    def _note_wishes(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind == ProcessDied.kind:  # a later life may be ended for something else
                self._restarted_for.pop(event.subject, None)
                self._to_stop.discard(event.subject)
            wish = decode_plain_effect(event.data) if event.kind == Effect.kind else {}
            params = wish.get("params", {})
            name = str(params.get("process", ""))
            if wish.get("action") == RESTART_PROCESS:
                reason, _, _ = str(wish.get("reason", "")).partition(HELD_BACK)
                self._restarted_for[name] = reason if params.get(FOR) else ""
                self._to_stop.discard(name)
            elif wish.get("action") == STOP_PROCESS:
                self._to_stop.add(name)

    def should_wake(self, window: Window) -> bool:
        """Never: its conclusions are events, and those wake."""
        return False

    async def collect(self) -> Reading:
        """Probe every guarded process once; if one is known to be dead, that one alone, and the others at the next call.

        A probe of all that is under way goes on meanwhile.
        """
        try:
            while True:
                await self._begin_looks()
                if look := self._looks.take_finished():
                    return await self._reading(look)
                await self._looks.wait()
        except asyncio.CancelledError:
            self.close()
            raise

    def close(self) -> None:
        """Break off the looks that are under way."""
        self._looks.close()

    async def _begin_looks(self) -> None:
        processes = self.settings().process
        histories = {process.name: self.current_state().processes[process.name] for process in processes}
        await self._looks.begin(processes, histories, self._known(histories))

    async def _reading(self, look: ProcessLook) -> Reading:
        histories, processes = look.histories, self._looks.newest_of(look)
        drafts = self._conclusions(look, processes)
        sights = self._sights
        self.table.hold([found for sight in sights.values() for found in sight.found], self._died)
        state = self.current_state().processes
        self._starting = any(
            state[name].starting and (sight.busy or not is_up(sight)) for name, sight in sights.items()
        )
        self._is_whole_due = not look.is_whole or len(processes) < len(look.processes)
        if not (self._is_whole_due or look.proofs or self._looks.dead):  # else a death waits for its answer
            await self._search_leftovers(processes, histories)
        until = asyncio.get_running_loop().time() + OUTPUTS_S
        drafts = [await self._with_output(draft, processes, histories, until) for draft in drafts]
        self._told = self._told_after(look, self._data(processes, histories))
        return Reading(self._told, tuple(drafts))

    def _told_after(self, look: ProcessLook, news: Mapping[str, Json]) -> Mapping[str, Json]:
        """What is told of all of them. What did not change is the same value in the same place as in the sample before: a
        kept snapshot, which may have hundreds of samples of hundreds of processes, then has it once."""
        kept = self._others_of(look, self._told).keys() | news.keys()
        before = {name: value for name, value in self._told.items() if name in kept}
        return before | {name: value for name, value in news.items() if before.get(name) != value}

    def _conclusions(self, look: ProcessLook, processes: Sequence[ProcessSettings]) -> list[Draft]:
        """What follows from what the look saw of these, of which it is the newest."""
        seen, histories = look.seen.result(), look.histories
        sights = {one.name: believed(one, seen[one.name], histories[one.name]) for one in processes}
        drafts: list[Draft] = []
        streaks: dict[str, int] = {}
        now, expires = self.clock.now(), self.settings().intent.expires
        earlier = self._earlier()
        unwatched = self._unwatched(now)
        before_now = self._streaks
        if before_now is None:
            before_now = {name: said.get("streak", 0) for name, said in earlier.items()}
        restarting = self._restarting({process.name for process in processes if process.start})
        resumed = self._resumed()
        if look.is_whole:
            self.health.forget_others(frozenset(one.name for one in look.processes if one.probe))
            guarded = {one.name for one in look.processes}
            self._holders = {name: words for name, words in self._holders.items() if name in guarded}
            self._restarted_for = {name: why for name, why in self._restarted_for.items() if name in guarded}
            self._to_stop &= guarded
        to_stop = self._to_stop.union(self.current_state().processes.stopping.values())
        for process in processes:
            name, history = process.name, histories[process.name]
            proven = recorded_process(history) in look.proofs
            before = known if (known := look.before.get(name)) in look.proofs else None
            life, said = identity(sights[name], history), earlier.get(name, {})
            sights[name] = self.health.observe(process, sights[name], life, history, now, said)
            record = self.health.record(name)
            failed = record.verdict(process) if process.probe else ""
            streak = before_now.get(name, 0)
            ended = [one for one in (recorded_process(history), before) if one and self.table.has_ended(one)]
            killed = [one for one in ended if self.table.has_killed(one)]
            holder = self._holders[name] = self._holder(process, sights[name], history)
            unseen = self._unguarded(name, history) or unwatched
            more = (failed, name in restarting, ended, name in resumed, holder, *unseen, record.failing)
            probe = ProcessProbe(
                process, sights[name], history, streak, now, expires, proven, before, *more, killed
            )
            limit = self._restarted_for.get(name, "")
            conclusion = conclude(probe._replace(limit=limit, stopping=name in to_stop))
            drafts += conclusion.drafts
            streaks[name] = conclusion.streak
        self._streaks = {**self._others_of(look, self._streaks or {}), **streaks}
        self._sights = {**self._others_of(look, self._sights), **sights}
        return drafts

    def _unwatched(self, now: Moment) -> tuple[int, str]:
        """Since when nobody has looked (UTC microseconds), and why; 0 while looks follow each other as they should.

        One is due after each interval at the latest, four of them while Pulse does less than usual: if it is late by half a
        minute, a death was not seen through its pidfd either; nor while the loop stood still, which its time leaves out.
        """
        turned = round(asyncio.get_running_loop().time() * US_PER_SECOND)
        last, self._concluded = self._concluded, (now, turned)
        if last is None:
            control = self.current_state().control
            return control.unwatched, LOG_GAP if control.has_gap else NO_DAEMON
        gap, longest = now.since(last[0]), SLOWEST * self.settings().watch.process_interval + LATE_US
        is_unwatched = gap > longest or gap - (turned - last[1]) > STOOD_STILL_US
        return (now.at - gap, "nobody looked") if is_unwatched else (0, "")

    def _unguarded(self, name: str, history: ProcessHistory) -> tuple[int, str] | None:
        """The same of what was put back into the settings and is looked at for the first time since, by any daemon."""
        out, back, begun = history.unguarded, history.guarded, self.current_state().control.started
        if out is None or back is None or name in self._sights or (begun and begun.since(back) > 0):
            return None
        return out.at, UNGUARDED

    def _others_of(self, look: ProcessLook, kept: Mapping[str, T]) -> dict[str, T]:
        """What is kept of those of which this look tells nothing."""
        told = {one.name for one in self._looks.newest_of(look)}
        guarded = {one.name for one in look.processes} if look.is_whole else kept.keys()
        return {name: value for name, value in kept.items() if name in guarded and name not in told}

    async def _search_leftovers(
        self, processes: Sequence[ProcessSettings], histories: Mapping[str, ProcessHistory]
    ) -> None:
        """Search for leftovers, and for others that match, if that is due; with all processes."""
        now = self.clock.now()
        rest = SEARCH_PAUSE_US if self._needs_search else LEFTOVERS_US
        is_due = self._searched is None or now.since(self._searched) >= rest
        if not (is_due or self._leftovers):
            return
        mains = {name: identity(sight, histories[name]) for name, sight in self._sights.items()}
        gone = dict.fromkeys(self.current_state().processes.of.keys() - mains.keys())
        self._leftovers, self._searched = self.table.leftovers({**gone, **mains}), now
        self._needs_search = False
        is_other = any(mains.get(name) != main for name, main in self._others)
        is_other = is_other or self._compared is None or now.since(self._compared) >= OTHERS_US
        if is_other and (told := await self._others_unless_one_dies(processes, mains)) is not None:
            self._compared = now
            self._others = {(name, mains[name]): words for name, words in told.items()}

    async def _others_unless_one_dies(
        self, processes: Sequence[ProcessSettings], mains: Mapping[str, ProcessId | None]
    ) -> Mapping[str, str] | None:
        """Who matches beside those that are known; None if the search was broken off, since a death does not wait for it."""
        search = self._search = asyncio.ensure_future(self.table.others(processes, mains))
        try:
            await asyncio.wait([search])
            return None if search.cancelled() else search.result()
        finally:
            search.cancel()
            self._search = None

    async def _with_output(
        self,
        draft: Draft,
        processes: Sequence[ProcessSettings],
        histories: Mapping[str, ProcessHistory],
        until: float,
    ) -> Draft:
        """A death with the end of what that process printed, if Pulse started it and knows where its output begins; and a
        process whose start is not recorded with why its output is not in its log. until: no log is read later (loop time).
        """
        died, history = draft.payload, histories[draft.subject]
        start = history.start
        if isinstance(died, ProcessUp) and died.pid and (not start or died.pid != start.pid):
            why = self.table.unlogged(ProcessId(died.pid, died.started or 0))
            checked = ProcessUp(**{**dict(died), "unlogged": why})  # as a copy would not be
            return replace(draft, payload=checked)
        if not isinstance(died, ProcessDied) or start is None or start.logged is None:
            return draft
        if died.pid != start.pid or (history.pid, history.started) != (start.pid, start.started):
            return draft
        if asyncio.get_running_loop().time() >= until:
            return draft
        process = next(one for one in processes if one.name == draft.subject)
        printed = await self.table.last_lines(process, ProcessId(start.pid, start.started), start.logged)
        return replace(draft, payload=died.model_copy(update={"printed": printed}))

    def _earlier(self) -> Mapping[str, Mapping[str, Json]]:
        """What the newest sample of an earlier daemon said, at this daemon's first look in the same boot."""
        last = self.window().last if self._streaks is None else None
        return last.data if last and last.moment.boot == self.clock.now().boot else {}

    def _known(self, histories: Mapping[str, ProcessHistory]) -> Mapping[str, ProcessId]:
        boot = self.clock.now().boot
        return {
            name: ProcessId(history.pid, history.started)
            for name, history in histories.items()
            if history.pid is not None and history.started is not None and history.boot == boot
        }

    def _restarting(self, names: Collection[str]) -> frozenset[str]:
        """Those of these names whose restart is being carried out at this moment."""
        return frozenset(self.current_state().restarts_begun.values()).intersection(names)

    def _holder(self, process: ProcessSettings, sight: ProcessObservation, history: ProcessHistory) -> str:
        """Who else holds its port, in words: while it is down, whoever was seen there since it was up last."""
        newest = self.health.record(process.name).newest
        if told := sight.holder or (newest.holder if newest else ""):
            return told
        # Of what has a probe, only that one's answer says it: who ends before the first one tells nothing of its port.
        answers = sight.answering if process.probe is None else newest.ok if newest else None
        is_free = is_up(sight) or (answers is not None and sight.found)
        return "" if is_free else was_held(self._holders.get(process.name, ""))

    def _resumed(self) -> frozenset[str]:
        """At the first look, those that an earlier daemon may have ended: whom it ended, it knew alone."""
        if self._streaks is not None:
            return frozenset()
        open_ = self.current_state().processes
        return frozenset({*open_.restarting.values(), *open_.stopping.values()})

    def _died(self, found: ProcessId) -> None:
        self._looks.add_proof(found)
        self._needs_search = True
        if self._search:
            self._search.cancel()
        self.nudge.set()

    def _data(
        self, processes: Sequence[ProcessSettings], histories: Mapping[str, ProcessHistory]
    ) -> Mapping[str, Json]:
        gone = {
            name: {"leftovers": _pids(left)}
            for name, left in self._leftovers.items()
            if name not in self._sights
        }
        return {
            **{process.name: self._said(process, histories[process.name]) for process in processes},
            **gone,
        }

    def _said(self, process: ProcessSettings, history: ProcessHistory) -> Mapping[str, Json]:
        name, sight = process.name, self._sights[process.name]
        found = identity(sight, history)
        probe = self.health.record(name).as_json(process) if process.probe else {}
        streak = (self._streaks or {}).get(name, 0)
        others = sight.detail if sight.unlike else self._others.get((name, found))
        return {
            "up": is_up(sight),
            "pid": found.pid if found else None,
            # Of one that the log does not know a restart must be able to say whom it replaces.
            **({"started": found.started} if found and found != recorded_process(history) else {}),
            **({"answering": sight.answering} if sight.answering is not None else {}),
            **({"probe": probe} if probe else {}),
            **({"streak": streak} if streak else {}),
            **({"detail": sight.detail} if sight.detail else {}),
            **({"others": others} if others else {}),
            **({"holder": holder} if (holder := self._holders.get(name)) else {}),
            **({"leftovers": _pids(left)} if (left := self._leftovers.get(name)) else {}),
        }


def _pids(left: Sequence[ProcessId]) -> Json:
    return [one.pid for one in left]
