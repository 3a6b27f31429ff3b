"""The table of this machine's processes, for the core's process watcher."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from pulse_adapters.host import listening_ports
from pulse_adapters.host.claims import Claims
from pulse_adapters.host.environment_file import environment_of
from pulse_adapters.host.guarded_processes import (
    Systemctl,
    early_exit,
    launch_s,
    processes_left_by,
    strangers_left_by,
    successors,
)
from pulse_adapters.host.life_evidence import is_led_by
from pulse_adapters.host.lives import Lives
from pulse_adapters.host.marked_processes import HomeMarks, variable_in
from pulse_adapters.host.outputs import end_of_life
from pulse_adapters.host.pid_files import PidFiles, is_launching, launcher_observation
from pulse_adapters.host.process_deaths import ProcessDeaths
from pulse_adapters.host.process_identity import (
    Choice,
    begun_otherwise,
    choose,
    hang_of_late,
    held_words,
    is_as_begun,
    is_known_by_start_alone,
    is_produced_by,
    not_of_user,
    sum_shown_by,
    who_show,
    words_of,
    words_of_others,
)
from pulse_adapters.host.process_search import find_matching
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.environment import UNLOGGED_MARK
from pulse_adapters.workers.file_threads import FileThreads, RecentMounts
from pulse_adapters.workers.proc import (
    TICKS_PER_SECOND,
    described,
    environment,
    is_alive,
    read_stat,
    start_time_of,
    ticks_now,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_core.model.errors import PulseError
from pulse_core.model.pattern import search_pattern
from pulse_core.ports.host import Life, ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings

T = TypeVar("T")

_LINES_S = 0.1
"""How long a death waits for the end of what the process printed, in seconds."""
_FORK_TICKS = 100
"""How long after the end of its start, at most, a process in the background begins, in clock ticks."""
_HANDED_TICKS = 20
"""How long before its end is noticed, at most, one that forks twice to be a daemon has forked for the second time."""
FEW = 20
"""Processes that are told apart on the loop, a fifth of a millisecond each; more, in a thread: anybody may begin thousands
that match."""
_CATCH_UP = (0.01, 0.02, 0.05, 0.1)  # seconds systemd is given to notice a death that we saw before it did


class LinuxProcessTable:
    """Finds processes in /proc and watches them by pidfd.

    A known process is it until it dies, whatever else matches; only without one the settings find another.
    guarded: all that is guarded, since whoever is held for one of them is never found for another; outputs: where the logs
    of the processes are.
    """

    def __init__(
        self,
        spawner: Spawner,
        home: Path | None = None,
        lives: Lives | None = None,
        guarded: Callable[[], Sequence[ProcessSettings]] = tuple,
        outputs: Path | None = None,
    ) -> None:
        self._lives, self._guarded = lives, guarded
        self._marks = lives.home_marks if lives and home else HomeMarks(home)
        self._claims, self._looks = Claims((), {}, None, self._marks), 0
        self._searched_once: set[str] = set()
        self._adopted_starts: dict[str, ProcessId] = {}
        self._spawner = spawner
        self._systemctl = Systemctl(spawner)
        self._pid_files, self._files, self._has_others = PidFiles(), FileThreads(), RecentMounts()
        self._outputs, self._output_files = outputs, FileThreads(_LINES_S)
        self._deaths = ProcessDeaths(spawner)

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        """Observe each process, by its name; an observation that fails says so and affects no other."""
        self._looks += 1
        self._spawner.unknown.look(time.monotonic())
        try:
            return await self._look(processes, known)
        finally:
            self._looks -= 1

    async def _look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        if self._lives:
            await self._lives.resume()
        sights: dict[str, ProcessObservation] = {}
        ahead: list[ProcessSettings] = []
        lives = self._lives.lasts() if self._lives else {}  # once: each answer may look at all of them
        for process in processes:
            sight = sights[process.name] = self._check_known(process, known.get(process.name), lives)
            if is_launching(process, lives.get(process.name), sight):
                ahead.append(process)
            elif process.pid_file and sight.found:
                # So that it is known when it changes.
                self._files.begin(process.pid_file, partial(self._pid_files.observe, process.pid_file))
            elif not (sight.found or is_known_by_start_alone(process) or self._has_just_died(process, known)):
                ahead.append(process)
        if ahead or not all(sight.found for sight in sights.values()):
            before = self._claims if self._looks > 1 else None
            self._claims = Claims((*self._guarded(), *processes), known, self._lives, self._marks, before)
        dead = (one for one in processes if one.name not in known or not is_alive(known[one.name]))
        await self._take_over(dead, sights)
        seen = ((one, sights[one.name]) for one in ahead)
        ahead = [one for one, now in seen if not now.found or is_launching(one, lives.get(one.name), now)]
        if ahead:
            await self._search(ahead, sights)
            lives = self._lives.lasts() if self._lives else {}
            for process in ahead:
                begun = self._check_known(process, known.get(process.name), lives)
                if begun.found and not is_launching(process, lives.get(process.name), begun):
                    # It was started while others were searched.
                    sights[process.name] = begun
            self._hold_once(ahead, sights)
        for name, words in self._adopted(ahead, {name: one.found for name, one in sights.items()}):
            sights[name] = sights[name]._replace(detail=f"{sights[name].detail}; {words}")
        for process in processes:
            if process.start and process.name in known and not sights[process.name].found:
                await self._adopt_fork(process, known[process.name], sights)
        for process in filter(is_known_by_start_alone, processes):
            name, is_first = process.name, process.name not in self._searched_once
            self._searched_once.add(name)
            if is_first and not sights[name].found:
                await self._adopt_unrecorded(process, known.get(name), sights)
        gone = (one for one in filter(is_known_by_start_alone, processes) if not sights[one.name].found)
        # Together: each waits for a while, and many starts may end at once, while others' deaths wait for this look.
        adoptions = (
            self._adopt_background(one, known[one.name], sights) for one in gone if one.name in known
        )
        await asyncio.gather(*adoptions)
        return sights

    async def _take_over(
        self, processes: Iterable[ProcessSettings], sights: dict[str, ProcessObservation]
    ) -> None:
        """Take, for a name that has none, what was started for one that is no longer in the settings: it is renamed."""
        claims, guarded = self._claims, {one.name for one in self._guarded()}
        renamed = self._lives.renamed() if self._lives else {}
        shown: Mapping[str, Sequence[str]] | None = None
        for process in processes if guarded and (claims.unguarded or renamed) else ():
            if process.name in renamed:
                self._rename(process.name, *renamed[process.name], sights)
            was_begun = process.name in claims.known or claims.has_life(process.name)
            if sights[process.name].found or not process.start or was_begun:
                continue
            if shown is None:  # once: many may be gone from the settings while many others were never begun
                living = ((name, one) for name, one in claims.unguarded.items() if is_alive(one))
                shown = {name: words_of(one.pid) for name, one in living}
            for name in who_show(process, shown):
                one = claims.unguarded[name]
                if not is_alive(one) or claims.other(process.name, one):
                    continue
                with suppress(TimeoutError):  # it is looked at again
                    if await self._ask_of(process, partial(is_as_begun, process, one.pid), str(one)):
                        self._rename(process.name, name, one, sights)
                        break

    def _rename(self, new: str, old: str, one: ProcessId, sights: dict[str, ProcessObservation]) -> None:
        words = f"process {one.pid} was started as {old}, which is no longer in the settings"
        sights[new] = ProcessObservation((one,), detail=words)
        self._claims.add(new, one)

    def _hold_once(self, processes: Sequence[ProcessSettings], sights: dict[str, ProcessObservation]) -> None:
        """Let each process that was found stand for one name: for the first, if it is not held already."""
        for process in sorted(
            processes, key=lambda one: not one.systemd_unit
        ):  # systemd says which one is a unit's
            sight = sights[process.name]
            if not sight.found or sight.doubt:
                continue
            if not process.systemd_unit and (other := self._claims.other(process.name, sight.found[0])):
                answering = None if sight.answering is None else False
                words = held_words(sight.found[0], other)
                sights[process.name] = sight._replace(found=(), answering=answering, detail=words)
            else:
                self._claims.add(process.name, sight.found[0])

    async def _adopt_background(
        self, process: ProcessSettings, start: ProcessId, sights: dict[str, ProcessObservation]
    ) -> None:
        """Once after a start that ended early: take the process that it left in the background."""
        ended = early_exit(self._spawner, process, start)
        if ended is None or self._adopted_starts.get(process.name) == start:
            return
        self._adopted_starts[process.name] = start
        left = await successors(process, ended)
        if found := tuple(one for one in left if not self._claims.other(process.name, one)):
            words = f"process {found[0].pid} was left in the background by {start.pid}"
            sights[process.name] = ProcessObservation(found, known=False, detail=words)
        elif ended.code == 0 and (words := await strangers_left_by(process, ended.effect)):
            sight = sights[process.name]
            sights[process.name] = sight._replace(ended=f"{sight.ended} (of what it left, {words})")

    async def _adopt_fork(
        self, process: ProcessSettings, stood: ProcessId, sights: dict[str, ProcessObservation]
    ) -> None:
        """Once after the death of one that a start has just left in the background: take what it forked last.

        Who is a daemon forks twice, and whoever is between the two may do much before the second time. It forks and ends
        in one moment: so who is older was its helper.
        """
        died, life = ticks_now(), self._lives.last(process.name) if self._lives else None
        if life is None or life.found == stood or self._adopted_starts.get(process.name) == stood:
            return
        ended = early_exit(self._spawner, process, life.found)
        if not ended or ended.code or died - life.found.started > launch_s(process) * TICKS_PER_SECOND:
            return
        self._adopted_starts[process.name] = stood
        for one in await processes_left_by(process, ended.effect):
            is_new = one.started >= died - _HANDED_TICKS and is_produced_by(process.start, one.pid)
            if is_new and not self._claims.other(process.name, one):
                words = f"process {one.pid} was left in the background by {stood.pid}"
                sights[process.name] = ProcessObservation((one,), known=False, detail=words)
                return

    async def _adopt_unrecorded(
        self, process: ProcessSettings, known: ProcessId | None, sights: dict[str, ProcessObservation]
    ) -> None:
        """At the first observation: take a process that an earlier daemon started and died before it recorded.

        It leads a session, and executes what `start` says: all else is a helper of a dead one.
        """
        for found in await self._lives.find_starts(process.name) if self._lives else ():
            seen = read_stat(found.pid)
            if (
                self._lives
                and seen is not None
                and seen.session == found.pid
                and seen.has_executed
                and is_produced_by(process.start, found.pid)
                and self._lives.may_be_unrecorded(process.name, found, known)
                and not self._claims.other(process.name, found)
            ):
                words = f"process {found.pid} was started by an earlier daemon"
                self._lives.adopt(process.name, found, sum_shown_by(found.pid))
                sights[process.name] = ProcessObservation((found,), detail=words)
                return

    def _has_just_died(self, process: ProcessSettings, known: Mapping[str, ProcessId]) -> bool:
        """Whether what was held here is dead, so that nobody is searched for before that is recorded.

        Not so if a manager has a word in it, if a file says who goes on, or if it went into the background.
        """
        one = known.get(process.name)
        if process.systemd_unit or process.pid_file or one is None or one not in self._deaths:
            return False
        ended = early_exit(self._spawner, process, one)
        return ended is None or ended.code != 0

    def _check_known(
        self, process: ProcessSettings, known: ProcessId | None, lives: Mapping[str, Life]
    ) -> ProcessObservation:
        """Observe without a search: the last known process, while it lives, or what was started instead of it."""
        is_up = known is not None and is_alive(known)
        if not is_up:
            life = lives.get(process.name) if process.start else None
            if life and is_alive(life.found):  # it may not be recorded yet
                ended = self._end_of(process.name, known) if known else ""
                words = f"process {life.found.pid} is alive"
                return ProcessObservation((life.found,), detail=words, ended=ended)
        if known is None:
            return ProcessObservation(detail="not seen yet")
        if not is_up:
            ended = self._end_of(process.name, known)
            return ProcessObservation(detail=f"process {known.pid} is gone", ended=ended)
        return ProcessObservation((known,), known=True, detail=f"process {known.pid} is alive")

    def _end_of(self, name: str, known: ProcessId) -> str:
        return self._lives.end_of(name, known) if self._lives else self._spawner.end_of(known)

    async def _search(self, ahead: Sequence[ProcessSettings], sights: dict[str, ProcessObservation]) -> None:
        """Run everything that waits or scans concurrently."""
        async with asyncio.TaskGroup() as group:
            for process in ahead:
                if process.tcp:
                    look = self._port(process, process.tcp, sights[process.name])
                elif process.systemd_unit:
                    look = self._unit(process, process.systemd_unit, sights[process.name])
                elif process.pid_file:
                    look = self._named(process, process.pid_file, sights[process.name])
                else:
                    continue
                group.create_task(
                    _observe_or_busy(process.name, look, sights), name=f"look at {process.name}"
                )
            await self._search_lines([one for one in ahead if one.match], sights)

    async def _named(
        self, process: ProcessSettings, path: str, sight: ProcessObservation
    ) -> ProcessObservation:
        seen = await self._files.ask(path, partial(self._pid_files.observe, path))
        life = self._lives.last(process.name) if self._lives else None
        if not seen.found:
            if is_launching(process, life, sight):
                return launcher_observation(seen, sight)
            if await self._comes_up_in_background(process):
                # A launcher that ended well is no death: who writes the file may do so a moment later.
                detail = f"{seen.detail}; what its start left in the background has time to come up"
                return seen._replace(busy=True, detail=detail, ended=sight.ended)
            return seen._replace(ended=sight.ended)
        if words := not_of_user(process, seen.found[0].pid):
            seen = ProcessObservation(detail=words)
        elif not self._is_of_start(process, seen.found[0]):
            about = f"process {seen.found[0].pid} of {path} is no work of its `start`"
            if seen.doubt:  # two signs that it is another one
                seen = ProcessObservation(detail=f"{about}, and younger than that file")
            else:
                seen = ProcessObservation(detail=about, unlike=seen.found)
        elif process.start and seen.doubt:
            seen = ProcessObservation(seen.found, detail=f"process {seen.found[0].pid} of {path}")
        if not seen.found and is_launching(process, life, sight):
            return launcher_observation(seen, sight)
        return seen._replace(ended=sight.ended)

    async def _search_lines(
        self, processes: Sequence[ProcessSettings], sights: dict[str, ProcessObservation]
    ) -> None:
        patterns = {one.name: pattern for one in processes if (pattern := search_pattern(one.match or ""))}
        hits = await find_matching(patterns, self._spawner.running) if patterns else {}
        for process in processes:
            name = process.name
            if hits.get(name) == () and hang_of_late(process):
                words = "nobody is searched for yet: processes of its user show no command line"
                sights[name] = sights[name]._replace(busy=True, detail=words)
            elif (found := hits.get(name)) is not None:
                try:
                    sights[name] = (await self._choice(process, found)).told_in(sights[name])
                except TimeoutError as error:
                    sights[name] = sights[name]._replace(busy=True, detail=f"could not look: {error}")
            else:  # of a home that an earlier version has searched for; nobody may be started beside who is there
                words = (
                    f"nobody is searched for: RE2 does not support {process.match!r} (upulse config check)"
                )
                sights[name] = sights[name]._replace(busy=True, detail=words)

    async def _choice(self, process: ProcessSettings, found: Sequence[ProcessId]) -> Choice:
        is_marked = partial(self._marks.are_on, process.name) if self._marks.home else None
        stood, holder = self._claims.known.get(process.name), partial(self._claims.other, process.name)
        is_open = self._lives and self._lives.in_background(process, stood)
        left = self._background_starts(process) if is_open else ()
        is_left = partial(self._is_left, process)
        chosen = partial(choose, process, found, is_marked, left, holder, is_left)
        if len(found) > FEW and not (process.cwd and self._has_others()):
            return await in_process_thread(chosen)
        return await self._ask_of(process, chosen, str(found))

    async def _ask_of(self, process: ProcessSettings, question: Callable[[], T], key: str) -> T:
        """The answer about who may be a process, for which its `cwd` is compared with theirs, if it has one.

        Raises TimeoutError if their file systems do not answer.
        """
        return await self._files.ask(process.cwd, question, key) if process.cwd else question()

    def _is_left(self, process: ProcessSettings, one: ProcessId) -> bool:
        """Whether this came out of a life of it that is over."""
        stood = self._claims.known.get(process.name)
        if self._lives is None:
            return stood is not None and is_led_by(one.pid, stood)
        return self._lives.is_left(process, one, stood)

    def _is_of_start(self, process: ProcessSettings, one: ProcessId) -> bool:
        """Whether `start` would produce this process, or a start has left it; nobody knows that of a `command`."""
        return not process.start or is_produced_by(process.start, one.pid) or self._has_started(process, one)

    def _has_started(self, process: ProcessSettings, one: ProcessId) -> bool:
        """Whether there is a sign that this process came out of a start of it: a mark, the log, its time or its group."""
        life = self._lives.last(process.name) if self._lives else None
        return (
            self._marks.are_on(process.name, one.pid)
            or (life is not None and life.found == one)
            or one.started in self._background_starts(process)
            or bool(self._lives and self._lives.holds(process.name, one.pid))
        )

    def _adopted(
        self, processes: Sequence[ProcessSettings], found: Mapping[str, Sequence[ProcessId]]
    ) -> Iterator[tuple[str, str]]:
        """The names of those for which one process was found that nobody here has started, and words that tell it."""
        # What was started for a name of before is no stranger.
        begun = {life.found for life in self._lives.lasts().values()} if self._lives else set()
        for process in processes if self._marks.home else ():
            one = found.get(process.name, ())
            if not process.start or len(one) != 1 or one[0] in begun:
                continue
            if not self._has_started(process, one[0]):
                yield process.name, f"nothing shows that Pulse started process {one[0].pid}"

    async def _comes_up_in_background(self, process: ProcessSettings) -> bool:
        """Whether its last start has left somebody in the background, and has its grace still."""
        life, stood = self._lives and self._lives.last(process.name), self._claims.known.get(process.name)
        ended = self._lives.in_background(process, stood) if self._lives else None
        if not life or not ended or ticks_now() - life.found.started > launch_s(process) * TICKS_PER_SECOND:
            return False
        return bool(await successors(process, ended))

    def _background_starts(self, process: ProcessSettings) -> Container[int]:
        """When that began, in clock ticks after boot, which the last start has left in the background, if it has."""
        life = self._lives.last(process.name) if self._lives and process.start else None
        ended = early_exit(self._spawner, process, life.found) if life else None
        return range(life.found.started, ended.at + _FORK_TICKS) if life and ended and not ended.code else ()

    async def _port(
        self, process: ProcessSettings, address: str, sight: ProcessObservation
    ) -> ProcessObservation:
        try:
            where = await listening_ports.resolve_addresses(address, self._spawner)
        except PulseError as error:
            return sight._replace(answering=False, detail=str(error))
        lacking = ""
        try:
            answering = await listening_ports.accepts_connections(where)
        except PulseError as error:
            answering, lacking = False, f"{address} could not be asked: {error}"
        # After that: who closes its port meanwhile would else be found, and not answer.
        inodes, owners = await in_process_thread(listening_ports.owners_at, where)
        answering = bool(inodes) if lacking else answering
        words = lacking or f"{address} {'answers' if answering else 'does not answer'}"
        if not owners:
            words += f"; {listening_ports.UNSEEN}" if answering else ""
            return sight._replace(answering=answering, detail=words)
        chosen = await self._choice(process, owners)
        if not chosen.found:  # somebody answers there, and it is not the process
            holder = owners[0].pid
            why = not_of_user(process, holder)
            if other := self._claims.other(process.name, owners[0]):
                why = f"that is {other}"
            elif self._is_left(process, owners[0]):
                why = "an earlier start has left it"
            words = f"{address} is held by {described(holder)}{f': {why}' if why else ''}"
            return sight._replace(answering=False, detail=words, unlike=chosen.unlike, holder=words)
        return chosen.told_in(sight)._replace(
            answering=answering, detail=f"{words}{f'; {chosen.doubt}' if chosen.doubt else ''}"
        )

    async def _unit(
        self, process: ProcessSettings, name: str, sight: ProcessObservation
    ) -> ProcessObservation:
        user, known = process.systemd_user, self._claims.known.get(process.name)
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
        ended = unit.ended if known and unit.last == known.pid else ""
        intended = unit.intended or bool(found and known and unit.is_restarted(known.pid))
        # It is not asked again while this process lives, whatever state the unit is in by then.
        words = f"process {unit.pid} is that of {name}" if found and unit.active == "active" else unit.words
        return ProcessObservation(found, answering, sight.known, intended, unit.busy, words, ended)

    def hold(self, found: Iterable[ProcessId], died: Callable[[ProcessId], None]) -> None:
        self._deaths.hold(found, died)

    async def others(
        self, processes: Sequence[ProcessSettings], mains: Mapping[str, ProcessId | None]
    ) -> Mapping[str, str]:
        """In one search those that match a `match`, and came out of no start of this process; and who was adopted."""
        held = {one.name: (one, main) for one in processes if one.match and (main := mains.get(one.name))}
        texts = {
            name: pattern for name, (one, _) in held.items() if (pattern := search_pattern(one.match or ""))
        }
        hits = await find_matching(texts, self._spawner.running) if texts else {}
        words = dict[str, str]()
        for name, found in hits.items():
            told = partial(words_of_others, *held[name], found, partial(self._marks.are_on, name))
            words[name] = await in_process_thread(told) if len(found) > FEW else told()
        standing = {name: (main,) for name, main in mains.items() if main}
        changed = (
            (one.name, begun_otherwise(one, main.pid)) for one in processes if (main := mains.get(one.name))
        )
        for name, more in (*self._adopted(processes, standing), *changed):
            words[name] = "; ".join(filter(None, (words.get(name), more)))
        return {name: whole for name, whole in words.items() if whole}

    def leftovers(self, mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
        return self._lives.leftovers(mains) if self._lives else {}

    def has_ended(self, found: ProcessId) -> bool:
        return self._spawner.has_ended(found)

    def has_killed(self, found: ProcessId) -> bool:
        return self._spawner.has_killed(found)

    def unlogged(self, found: ProcessId) -> str:
        return variable_in(environment(found.pid), UNLOGGED_MARK)

    async def last_lines(self, process: ProcessSettings, found: ProcessId, since: int) -> str:
        if self._outputs is None or self._deaths.may_have_more(found):  # of which any may be a secret
            return ""
        path = self._outputs / f"{process.name}.log"
        try:
            env = await environment_of(process, self._output_files)
        except PulseError:
            env = process.env

        # The settings may have changed since it was given this.
        given = self._deaths.variables(found)

        def question() -> str:
            return end_of_life(self._spawner.current(path), since, env, given, self._spawner.inherited)

        try:
            return await self._output_files.ask(str(path), question, str(since))
        except OSError:
            return ""

    def close(self) -> None:
        """Stop watching all processes."""
        self._deaths.close()


async def _observe_or_busy(
    name: str, look: Awaitable[ProcessObservation], sights: dict[str, ProcessObservation]
) -> None:
    """Store the observation. One that failed has not seen a death: it is stored as busy, so that no rule acts on it."""
    try:
        sights[name] = await look
    except (PulseError, OSError) as error:
        sights[name] = sights[name]._replace(busy=True, detail=f"could not look: {error}")
