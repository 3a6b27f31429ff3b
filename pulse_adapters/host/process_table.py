"""The table of this machine's processes, for the core's process watcher."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host import listening_ports
from pulse_adapters.host.clock import boot_us
from pulse_adapters.host.guarded_processes import Systemctl, early_exit, processes_left_by
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.process_search import find_marked, find_matching, may_match
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.environment import PROCESS_MARK
from pulse_adapters.workers.proc import TICKS_PER_SECOND, is_alive, open_pidfd, start_time_of
from pulse_core.model.errors import PulseError
from pulse_core.model.pattern import search_pattern
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings

LOG = logging.getLogger("pulse.host")

_CATCH_UP = (0.01, 0.02, 0.05, 0.1)  # seconds systemd is given to notice a death that we saw before it did

_SLACK_S = 2.0  # start times are told in hundredths, file times in the tick of the file system


class LinuxProcessTable:
    """Finds processes in /proc and watches them by pidfd; a known process is kept while its start time agrees."""

    def __init__(self, spawner: Spawner, home: Path | None = None, lives: Lives | None = None) -> None:
        self._home, self._lives = home, lives
        self._searched_once: set[str] = set()
        self._adopted_starts: dict[str, ProcessId] = {}
        self._spawner = spawner
        self._systemctl = Systemctl(spawner)
        self._handles: dict[ProcessId, int | None] = {}
        self._reported: set[ProcessId] = set()

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        """Observe each process, by its name; an observation that fails says so and affects no other."""
        sights: dict[str, ProcessObservation] = {}
        ahead: list[ProcessSettings] = []
        for process in processes:
            sight = sights[process.name] = self._check_known(process, known.get(process.name))
            if not (sight.found or _has_no_way(process)):
                ahead.append(process)
        if ahead:
            await self._search(ahead, sights)
        for process in filter(_has_no_way, processes):
            name, is_first = process.name, process.name not in self._searched_once
            self._searched_once.add(name)
            if is_first and not sights[name].found:
                await self._adopt_unrecorded(name, sights)
            if name in known and not sights[name].found:
                await self._adopt_background(process, known[name], sights)
        return sights

    async def _adopt_background(
        self, process: ProcessSettings, start: ProcessId, sights: dict[str, ProcessObservation]
    ) -> None:
        """Once after a start that ended early: take the process that it left in the background."""
        ended = early_exit(self._spawner, process, start)
        if ended is None or self._adopted_starts.get(process.name) == start:
            return
        self._adopted_starts[process.name] = start
        if ended.code == 0 and (found := await processes_left_by(ended.effect)):
            words = f"process {found[0].pid} was left in the background by {start.pid}"
            sights[process.name] = ProcessObservation(found, known=False, detail=words)

    async def _adopt_unrecorded(self, name: str, sights: dict[str, ProcessObservation]) -> None:
        """At the first observation: take a process that an earlier daemon started and died before it recorded."""
        if self._home and (found := await find_marked(f"{name}@{self._home}", PROCESS_MARK, leaders=True)):
            sights[name] = ProcessObservation(
                found, known=False, detail=f"process {found[0].pid} was started by an earlier daemon"
            )

    def _check_known(self, process: ProcessSettings, known: ProcessId | None) -> ProcessObservation:
        """Observe without a search: the last known process, while it lives and still matches its settings."""
        if known is None:
            return ProcessObservation(detail="not seen yet")
        if not is_alive(known):
            return ProcessObservation(
                detail=f"process {known.pid} is gone", ended=self._spawner.end_of(known)
            )
        if not self._still_is(process, known):
            return ProcessObservation(known=True, detail=f"process {known.pid} lives but is no longer it")
        return ProcessObservation((known,), known=True, detail=f"process {known.pid} is alive")

    def _still_is(self, process: ProcessSettings, known: ProcessId) -> bool:
        if process.match:
            pattern = search_pattern(process.match)
            return pattern is None or may_match(known, pattern)
        if not process.pid_file:
            return True
        with suppress(OSError, ValueError):
            return _read_pid_file(process.pid_file)[0] == known.pid
        return False

    async def _search(self, ahead: Sequence[ProcessSettings], sights: dict[str, ProcessObservation]) -> None:
        """Run everything that waits or scans concurrently."""
        async with asyncio.TaskGroup() as group:
            for process in ahead:
                if process.tcp:
                    look = self._port(process.tcp, sights[process.name])
                elif process.systemd_unit:
                    look = self._unit(process.systemd_unit, process.systemd_user, sights[process.name])
                else:
                    continue
                group.create_task(
                    _observe_or_busy(process.name, look, sights), name=f"look at {process.name}"
                )
            for process in ahead:
                if process.pid_file:
                    seen = observe_pid_file(process.pid_file)
                    believed = sights[process.name]
                    sights[process.name] = seen._replace(known=believed.known, ended=believed.ended)
            await self._search_lines({one.name: one.match for one in ahead if one.match}, sights)

    async def _search_lines(self, matches: Mapping[str, str], sights: dict[str, ProcessObservation]) -> None:
        patterns = {name: pattern for name, text in matches.items() if (pattern := search_pattern(text))}
        hits = await find_matching(patterns, self._spawner.running) if patterns else {}
        for name, text in matches.items():
            if (found := hits.get(name)) is not None:
                words = f"process {found[0].pid} matches, of {len(found)}" if found else "no process matches"
                sights[name] = sights[name]._replace(found=found, detail=words)
            else:  # of a home that an earlier version has searched for; nobody may be started beside who is there
                words = f"nobody is searched for: RE2 does not support {text!r} (upulse config check)"
                sights[name] = sights[name]._replace(busy=True, detail=words)

    async def _port(self, address: str, sight: ProcessObservation) -> ProcessObservation:
        try:
            where = await listening_ports.resolve_addresses(address, self._spawner)
        except PulseError as error:
            if sight.known:
                raise  # it lives, and whether it answers cannot be asked: nothing follows from that
            return sight._replace(answering=False, detail=str(error))
        answering = await listening_ports.accepts_connections(where)
        found = sight.found or listening_ports.socket_owners(listening_ports.listening_inodes(where))
        words = f"{address} {'answers' if answering else 'does not answer'}"
        return sight._replace(found=found, answering=answering, detail=words)

    async def _unit(self, name: str, user: bool, sight: ProcessObservation) -> ProcessObservation:
        unit = await self._systemctl.show(name, user=user)
        for pause in _CATCH_UP:
            if unit.active != "active" or not unit.pid or start_time_of(unit.pid) is not None:
                break
            await asyncio.sleep(pause)
            unit = await self._systemctl.show(name, user=user)
        since = start_time_of(unit.pid) if unit.pid else None
        found = (ProcessId(unit.pid, since),) if since is not None else ()
        # A unit may be up without a main process (a oneshot that remains); then systemd's word is all there is.
        answering = True if unit.active == "active" and not unit.pid else None
        return ProcessObservation(found, answering, sight.known, unit.intended, unit.busy, unit.words)

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        """Watch exactly these from now on; each death is reported once, even if the dead is asked for again."""
        wanted = frozenset(found)
        self._reported &= wanted
        for gone in self._handles.keys() - wanted:
            self._release(gone)
        self._died = died
        for one in wanted - self._handles.keys() - self._reported:
            self._watch(one)

    def _watch(self, found: ProcessId) -> None:
        loop = asyncio.get_running_loop()
        try:
            handle = open_pidfd(found)
        except OSError as error:
            # The next look is the safety net, and tries again; losing this one would be worse.
            LOG.warning("cannot hold process %d by a pidfd: %s", found.pid, error.strerror)
            return
        self._handles[found] = handle
        if handle is None:
            loop.call_soon(self._report, found)
        else:
            loop.add_reader(handle, self._report, found)

    def _report(self, found: ProcessId) -> None:
        if found not in self._handles:  # it was released after the call was due
            return
        self._release(found)
        self._reported.add(found)
        if not self._spawner.reaps(found.pid):  # else the spawner waits for its exit code
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, found.pid, os.WEXITED | os.WNOHANG)
        self._died(found)

    def _release(self, found: ProcessId) -> None:
        handle = self._handles.pop(found)
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    def leftovers(self, mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
        return self._lives.leftovers(mains) if self._lives else {}

    def close(self) -> None:
        """Stop watching all processes."""
        for found in list(self._handles):
            self._release(found)


def _has_no_way(process: ProcessSettings) -> bool:
    return not (process.match or process.pid_file or process.systemd_unit or process.tcp)


async def _observe_or_busy(
    name: str, look: Awaitable[ProcessObservation], sights: dict[str, ProcessObservation]
) -> None:
    """Store the observation. One that failed has not seen a death: it is stored as busy, so that no rule acts on it."""
    try:
        sights[name] = await look
    except (PulseError, OSError) as error:
        sights[name] = sights[name]._replace(busy=True, detail=f"could not look: {error}")


def observe_pid_file(path: str) -> ProcessObservation:
    """The process that a PID file names, if it is alive and was there when the file was written."""
    try:
        pid, written = _read_pid_file(path)
    except FileNotFoundError:
        return ProcessObservation(detail=f"there is no {path}")
    except OSError as error:
        return ProcessObservation(detail=f"{path} cannot be read: {error.strerror}")
    except ValueError:
        return ProcessObservation(detail=f"{path} holds no process id")
    since = start_time_of(pid)
    if since is None:
        return ProcessObservation(detail=f"process {pid} of {path} is not alive")
    if time.time() - boot_us() / 1e6 + since / TICKS_PER_SECOND > written + _SLACK_S:
        return ProcessObservation(
            detail=f"process {pid} is younger than {path}: its number was given to another process"
        )
    return ProcessObservation((ProcessId(pid, since),), detail=f"process {pid} of {path}")


def _read_pid_file(path: str) -> tuple[int, float]:
    """The number in the file, and when it was written (seconds, UTC)."""
    # A FIFO in its place must not hang us.
    file = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK)
    try:
        text = os.read(file, 100).split()
        pid = int(text[0]) if text and text[0].isdigit() else 0
        if not 0 < pid < 2**31:
            raise ValueError("no process id")
        return pid, os.fstat(file).st_mtime
    finally:
        os.close(file)
