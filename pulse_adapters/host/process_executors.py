"""The executors of guarded processes: restarting one in the way its settings name, and stopping one with its whole tree."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host.clock import boot_us
from pulse_adapters.host.environment_file import environment_of
from pulse_adapters.host.guarded_processes import (
    Systemctl,
    early_exit,
    end_all,
    guarded_process,
    observe_one,
    processes_left_by,
    successors,
)
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.outputs import end_of_output
from pulse_adapters.host.process_attributes import started_as
from pulse_adapters.host.process_identity import is_produced_by, start_mark, start_sum
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.spawner import CommandTimedOut, Spawner
from pulse_adapters.workers.boot_id import boot_id
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.proc import TICKS_PER_SECOND, is_alive, read_stat
from pulse_core.actions import RESTART_PROCESS, STOP_PROCESS, Consumer, RestartParams, StopParams
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.executor import Executor, GivenUp, NotYet, Policy, Result, Safety, Slot
from pulse_core.ports.health import HealthAnswer
from pulse_core.ports.host import Life, ProcessId, ProcessObservation, ProcessTable
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings


class StopProcess(Executor):
    """Its `stop_signal`, a wait of its `stop_timeout`, then SIGKILL to the whole tree; a unit is stopped by systemd."""

    action, params = STOP_PROCESS.name, StopParams

    def __init__(
        self,
        settings: Callable[[], Settings],
        table: ProcessTable,
        known: Callable[[], Mapping[str, ProcessId]],
        lives: Lives,
    ) -> None:
        self._settings, self._table, self._known, self._lives = settings, table, known, lives
        self._spawner = lives.spawner
        self._systemctl = Systemctl(self._spawner)
        self._consumers = MemoryConsumers(settings, known, lambda: self._spawner.running)

    def policy(self, params: StopParams) -> Policy:
        """Idempotent: stopping a stopped process changes nothing."""
        process = next((one for one in self._settings().process if one.name == params.process), None)
        slot = Slot.NONE if process and not process.systemd_unit else Slot.SHARED
        return Policy(Safety.IDEMPOTENT, timeout=_timeout(self._settings(), params.process), slot=slot)

    def check(self, params: StopParams) -> None:
        """Refuse the name of a process, or a pattern, that is not in the settings."""
        if params.consumer is None:
            guarded_process(self._settings(), params.process or "")
        elif (pattern := params.consumer.pattern) not in self._settings().resources.stop:
            raise Refused(f"no {pattern!r} in `stop` under [resources] in config.toml; add it to allow this")

    async def execute(self, effect: Effect, params: StopParams, event: Event) -> Result:
        """End it: the known process, or the one that its settings find, if that is sure; the result names it."""
        if params.consumer is not None:
            return await self._stop(params.consumer)
        process = guarded_process(self._settings(), params.process or "")
        if process.systemd_unit:
            _note_end(self._spawner, self._known().get(process.name))
            await self._systemctl.change("stop", process.systemd_unit, user=process.systemd_user)
            return Result({"unit": process.systemd_unit})
        sight = await observe_one(self._table, process, self._known())
        _refuse_doubt(sight, "ended")
        left = set(sight.found)
        if sight.answering and not left:
            raise PulseError(f"nothing was ended: {sight.detail}")
        unsure = sight.busy or (sight.unlike and not self._lives.last(process.name))
        if (process.match or process.pid_file) and unsure and not left:
            raise PulseError(f"nothing was ended: {sight.detail}")
        await self._lives.stop(process, left)
        return Result({"ended": sorted(one.pid for one in left)})

    async def _stop(self, consumer: Consumer) -> Result:
        """End this exact process, if it may still be stopped; its pid may have been reused by now."""
        found = ProcessId(consumer.pid, consumer.started)
        if not is_alive(found):
            return Result({"ended": [], "already": True})
        if not await self._consumers.is_one(found, consumer.pattern):
            raise PulseError(
                f"process {found.pid} was let live: it is guarded, or keeps what is, or does not match any more"
            )
        await end_all(self._spawner, [found], _SOFT_S)
        return Result({"ended": [found.pid]})


def _refuse_doubt(sight: ProcessObservation, done: str) -> None:
    if sight.doubt:
        raise PulseError(
            f"nothing was {done}: {sight.doubt}; end the others yourself, or make the settings exact"
        )


def _note_end(spawner: Spawner, known: ProcessId | None) -> None:
    """Remember that a unit or a command, which end their process themselves, were told to, if it lives."""
    if known and is_alive(known):
        spawner.note_end(known)


def _timeout(settings: Settings, name: str | None) -> float:
    """Seconds that a stop or a restart may take: what the process has to end, and as long as anything else of it needs."""
    soft = next((one.stop_timeout / US_PER_SECOND for one in settings.process if one.name == name), _SOFT_S)
    return _BESIDES_S + soft


_FRESH_US = 1_000_000
_SOFT_S, _BESIDES_S = 10.0, 50.0
"""Seconds: what a consumer of memory has to end, and what a stop or a restart takes at most besides that."""


Probe = Callable[[ProcessSettings, ProcessId | None], Awaitable[HealthAnswer]]
"""Asks a process whether it serves, as `HealthProber.ask` does."""


async def nobody_probes(process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
    """Where no daemon runs, nobody knows whether a process serves."""
    return HealthAnswer(None)


class RestartProcess:
    """Ends the rest of a process and starts it again; does nothing if another one is up by now, or it is well again.

    is_up: whether the newest that is recorded of it says so; probe: asks it whether it serves; stopped_by: who wants it down
    by now, empty if nobody does. The watchdog retries, with a budget; so this doesn't, but while the machine is short of
    something.
    """

    action, params = RESTART_PROCESS.name, RestartParams

    def __init__(
        self,
        settings: Callable[[], Settings],
        table: LinuxProcessTable,
        known: Callable[[], Mapping[str, ProcessId]],
        lives: Lives,
        outputs: Path,
        is_up: Callable[[str], bool] = lambda name: False,
        probe: Probe = nobody_probes,
        stopped_by: Callable[[str], str] = lambda name: "",
    ) -> None:
        self._settings, self._table, self._known = settings, table, known
        self._is_up, self._probe, self._stopped_by = is_up, probe, stopped_by
        self._lives, self._spawner, self._outputs = lives, lives.spawner, outputs
        self._systemctl, self._files = Systemctl(self._spawner), FileThreads()
        self._boot, self._began = boot_id(), boot_us()

    def policy(self, params: RestartParams) -> Policy:
        """Verified first after a crash: a process that is already up is not started twice."""
        timeout = _timeout(self._settings(), params.process)
        slot = self._slot(params)
        return Policy(Safety.VERIFY_FIRST, timeout=timeout, slot=slot, outlasts_shortages=True)

    def _slot(self, params: RestartParams) -> Slot:
        process = next((one for one in self._settings().process if one.name == params.process), None)
        if process is None or process.systemd_unit or process.command:
            return Slot.SHARED
        try:
            return Slot.NONE if self._live_predecessors(params) else Slot.START
        except OSError:  # nobody can look now, and the tick must go on
            return Slot.START

    def check(self, params: RestartParams) -> None:
        """Refuse who is not in the settings, and who must wait for one whose death is not recorded yet."""
        guarded_process(self._settings(), params.process)
        if gone := [name for name in params.needs if self._is_gone(name)]:
            raise NotYet(f"{params.process} waits for {', '.join(gone)}, on which it depends")

    def _is_gone(self, name: str) -> bool:
        """Whether its known process is dead in fact; if nobody can look now, the log's word stands.

        Never of a unit, which may be up without a main process, nor of what is guarded no more: no news of it would follow.
        """
        known = self._known().get(name)
        with suppress(OSError):
            if known and not is_alive(known):
                return any(one.name == name and not one.systemd_unit for one in self._settings().process)
        return False

    async def execute(self, effect: Effect, params: RestartParams, event: Event) -> Result:
        """Restart it; the result has the new process if Pulse itself started it."""
        process = guarded_process(self._settings(), params.process)
        # How the start before ended, if it ended early: what it left in the background would run twice.
        before = params.instead_of.found if params.instead_of else self._known().get(params.process)
        start = early_exit(self._spawner, process, before) if before else None
        if not start and self._just_seen_dead(params, event):
            return await self._start(process, (), event, event.mono * TICKS_PER_SECOND // 1_000_000)
        behind = await processes_left_by(process, start.effect) if start and start.code == 0 else ()
        sight = await observe_one(self._table, process, self._known())
        if process.match and sight.busy:
            raise PulseError(f"nothing was started: {sight.detail}")
        is_of_earlier = event.boot != self._boot or event.mono < self._began
        if is_of_earlier:  # that daemon may have started it for this effect
            behind = (*behind, *await processes_left_by(process, event.id))
        if params.if_dead or params.instead_of:
            # The one that did not serve lives: only its probes know, which may have called it well since the wish.
            is_well = self._is_up(process.name) and self._known().get(process.name) == before
            may_be_it = before in sight.found or (before is None and not sight.found and sight.answering)
            if is_of_earlier and process.probe and may_be_it:  # this daemon may not have probed it yet
                is_well = is_well or bool((await self._probe(process, before)).ok)
            is_deaf = process.probe is not None and before in sight.found and not is_well
            if before is None:
                is_deaf = process.probe not in (None, "tcp") and not sight.found and not is_well
            if not is_deaf and sight.answering is not False and (sight.found or sight.answering):  # it is up
                it = sight.found[0]._asdict() if sight.found and not sight.doubt else {}
                return Result({"already": True, **it})
            if start and (stands := await successors(process, start)):
                # It went into the background, and has its grace to come up there.
                return Result({"already": True, **stands[0]._asdict()})
        if not process.command:  # that ends whom it means by itself
            _refuse_doubt(sight, "started")
        left = {*sight.found, *self._live_predecessors(params), *behind}
        return await self._start(process, left, event)

    def _just_seen_dead(self, params: RestartParams, event: Event) -> bool:
        """Whether the watcher saw it dead a moment ago, so that another search would only cost time."""
        fresh = event.boot == self._boot and 0 <= boot_us() - event.mono < _FRESH_US
        return (
            params.fresh and params.instead_of is not None and fresh and not self._live_predecessors(params)
        )

    def _live_predecessors(self, params: RestartParams) -> set[ProcessId]:
        believed = self._known().get(params.process)
        life = self._lives.last(params.process)  # it may not be recorded as up yet
        return {one for one in (believed, life and life.found) if one and is_alive(one)}

    async def _start(
        self,
        process: ProcessSettings,
        left: Collection[ProcessId],
        event: Event,
        died: int | None = None,
    ) -> Result:
        """Start it, when all of its last life is over; systemd and a restart command end the old one themselves.

        left: the live ones that stand for it; died: when it was dead at the latest, in clock ticks after boot, None if
        nobody knows.
        """
        if process.systemd_unit or process.command:
            _note_end(self._spawner, self._known().get(process.name))
        if process.systemd_unit:
            await self._systemctl.change("restart", process.systemd_unit, user=process.systemd_user)
            return Result({"unit": process.systemd_unit})
        if process.command:
            return await self._run(process, event)
        env = await environment_of(process, self._files)
        (user, attributes), unlogged, logged = started_as(process), list[str](), list[int]()
        ended: tuple[ProcessId, ...] = ()
        if left:
            await self._lives.stop(process, left)
            if who := self._stopped_by(process.name):  # to end the old one took time
                raise PulseError(f"not started: {who} has requested a stop meanwhile")
        elif process.kill == "tree":
            ended = await self._lives.end(process.name, self._known().get(process.name), died)
        async with self._lives.birthplace(process.name, event.id) as birthplace:
            new = await self._spawner.start(
                process.start,
                cwd=process.cwd,
                env={**env, **self._lives.marks(process.name, event.id), **start_mark(process)},
                output=self._log(process),
                unlogged=unlogged.append,
                logged=logged.append,
                user=user,
                attributes=attributes,
                birthplace=birthplace,
            )
        begun = {"settings": start_sum(process)}
        self._lives.begin(process.name, Life(event.id, new, begun["settings"]))
        leftovers = {"leftovers": [one.pid for one in ended]} if ended else {}
        begins = {"logged": logged[0]} if logged else {}
        # What hangs in the kernel does not even hear SIGKILL, and may for days: the new one goes on beside it.
        beside = {"beside": pids} if (pids := [one.pid for one in (*left, *ended) if is_alive(one)]) else {}
        return Result({**new._asdict(), **begun, **begins, **leftovers, **beside, **_told(*unlogged)})

    async def _run(self, process: ProcessSettings, event: Event) -> Result:
        env = await environment_of(process, self._files, is_for_command=True)
        try:
            outcome = await self._spawner.run(
                process.command, cwd=process.cwd, env=env, timeout=55.0, marker=event.id,
                log=self._log(process),
            )  # fmt: skip
        except CommandTimedOut as error:  # what it has begun may come up all the same
            raise GivenUp(str(error), {"exit": None}) from error
        if outcome.exit != 0:
            words = end_of_output(outcome.output) or "it said nothing"
            raise GivenUp(
                f"{process.command[0]!r} ended with {outcome.exit}: {words}", {"exit": outcome.exit}
            )
        return Result({"exit": 0, "took_ms": round(outcome.took * 1000), **_told(outcome.unlogged)})

    def _log(self, process: ProcessSettings) -> Path:
        return self._outputs / f"{process.name}.log"

    async def verify(self, effect: Effect, params: RestartParams, event: Event) -> Result | None:
        """The process that this effect started, if it lives; for a command or unit, one younger than the request."""
        process = guarded_process(self._settings(), params.process)
        if process.start:
            # What shows another command line, or was only forked, may be a helper of a dead one: it is ended before the
            # next start.
            started = await processes_left_by(process, event.id)
            seen = read_stat(started[0].pid) if started else None
            is_it = seen is not None and seen.has_executed and is_produced_by(process.start, seen.pid)
            return Result(started[0]._asdict()) if is_it else None
        sight = await observe_one(self._table, process, self._known())
        for one in sight.found:
            # Start times are cut to a hundredth of a second.
            if event.boot != self._boot or (one.started + 1) * 1_000_000 // TICKS_PER_SECOND > event.mono:
                return Result(one._asdict())
        return None


def _told(*unlogged: str) -> Mapping[str, Json]:
    """What a result says of an output that is not kept where it should be."""
    return {"unlogged": words} if (words := "; ".join(filter(None, unlogged))) else {}
