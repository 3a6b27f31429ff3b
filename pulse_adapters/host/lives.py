"""The lives of guarded processes: what belongs to one, what is left of one that has ended, and ending that.

A life is all that came out of one start. Its processes are known by the session that the start leads, by parents, and by
the start's `PULSE_EFFECT` in their environment. The log says which effect that was, which process it started, and when that
began: a mark alone makes nobody a member, nor does the number of a session, which another one may have been given since.
Of lives that the log does not know (the disk was full), and of those before the last one, `life_evidence` tells the members.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import cache
from itertools import filterfalse
from pathlib import Path

from pulse_adapters.host.guarded_processes import early_exit, end_all
from pulse_adapters.host.launch import Birthplace
from pulse_adapters.host.life_evidence import is_led_by, is_of_home
from pulse_adapters.host.life_groups import LifeGroups
from pulse_adapters.host.marked_processes import (
    Bearer,
    HomeMarks,
    MarkedProcesses,
    bearer_of,
    find_bearers,
)
from pulse_adapters.host.process_identity import start_sum
from pulse_adapters.host.spawner import ProcessEnded, Spawner
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import (
    ProcStat,
    descendants,
    has_group,
    is_alive,
    read_stat,
    session_of,
    start_time_of,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_adapters.workers.process_tree import (
    SHARED,
    Chosen,
    Table,
    any_of,
    end_chosen,
    in_tree,
)
from pulse_core.model.errors import PulseError
from pulse_core.model.memo import Memo
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.text import count
from pulse_core.ports.host import Life, ProcessId
from pulse_core.ports.loops import finish_despite_cancel
from pulse_core.settings.processes import ProcessSettings

MOMENT_S = 0.002
"""Seconds until the group of a new life is made: the record of its start is on its way to the disk by then."""


_RELAYS = 20
"""Searches for those that hand over to a fork of themselves all the time, at most, once there was one."""


class Relays:
    """Kills the process group of each bearer of a life that is over, as soon as it is found: nobody forks out of that.

    So those end, too, that hand over to a fork of themselves all the time, and are gone before a signal arrives.

    killed: those found. A group is killed in the life's own session, or in one that the bearer itself leads.
    """

    def __init__(self, life: Life | None) -> None:
        self._life = life
        self.killed: set[ProcessId] = set()

    def kill(self, seen: ProcStat, bearer: Bearer) -> None:
        """Kill the group of a process that was just read, if it bears the mark of the life and is younger."""
        life = self._life
        if life is None or bearer.effect != life.effect or seen.started < life.found.started:
            return
        if seen.session not in (life.found.pid, seen.pid) or seen.group in (0, 1, os.getpgrp()):
            return
        leader = read_stat(life.found.pid)
        if leader and leader.alive:  # it lives, or its number was given to somebody else
            return
        self.killed.add(seen.found)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(seen.group, signal.SIGKILL)


class Lives:
    """The last life of each guarded process, and what is left of it and of those before it.

    recorded: the lives that the log knows, by name; groups: those of this home, where there are any; mains: who is known to
    stand for each process; begun: the names of what is being started, by the effects that the log says do it; guarded: what
    the settings say; marks: by which its processes are known wherever it lies, by the path alone if they are not given.

    What is recorded, and the settings, are replaced and never changed: a start asks some twenty times for a last life, and
    where many are started at once nothing may be computed of all for each of them.
    """

    def __init__(
        self,
        spawner: Spawner,
        home: Path,
        recorded: Callable[[], Mapping[str, Life]] = lambda: {},
        groups: LifeGroups | None = None,
        mains: Callable[[], Mapping[str, ProcessId]] = lambda: {},
        begun: Callable[[], Mapping[str, str]] = lambda: {},
        guarded: Callable[[], Sequence[ProcessSettings]] = tuple,
        marks: HomeMarks | None = None,
    ) -> None:
        self.spawner, self._home, self._recorded, self._groups = spawner, home, recorded, groups
        self._mains, self.begun, self._guarded = mains, begun, guarded
        self.home_marks = marks or HomeMarks(home)
        self._begun = dict[str, Life]()
        self._unrecorded: Mapping[str, Life] = {}  # of those; replaced, and never changed
        self._unrecorded_of = Memo(_unrecorded)
        self._lives_of, self._alike_of, self._unguarded_of = (
            Memo(_by_first_names),
            Memo(_alike),
            Memo(_unguarded),
        )
        self._resumed: set[str] = set()
        self._marked = MarkedProcesses()
        self._grouped: tuple[Bearer, ...] | None = None

    def marks(self, name: str, effect: str) -> Mapping[str, str]:
        """The variables by which the processes of a new life are known."""
        return {EFFECT_MARK: effect, **self.home_marks.variables(name)}

    def birthplace(self, name: str, effect: str) -> AbstractAsyncContextManager[Birthplace | None]:
        """The control group in which the life that this effect begins can be born; None without."""
        return self._groups.birthplace(effect, name=name) if self._groups else nullcontext()

    def begin(self, name: str, life: Life) -> None:
        """Remember a life that has just begun."""
        self._begun[name] = life
        self._unrecorded = {**self._unrecorded, name: life}
        if self._groups:  # a moment later: its thread would hold up the record of what has begun
            asyncio.get_running_loop().call_later(MOMENT_S, self._begin_group, name, life)

    def _begin_group(self, name: str, life: Life) -> None:
        if self._groups and self._begun[name] is life:
            self._groups.begin(life, name=name)

    async def resume(self) -> None:
        """Have the lives that an earlier daemon began be in groups of their own, too. Cheap if none is new in the log."""
        if self._groups:
            if self._grouped is None:
                await in_process_thread(self._groups.earlier)
            own = {life.effect for life in self._begun.values()} | self._resumed
            new = {name: one for name, one in self._recorded().items() if one.effect not in own}
            if new:
                self._resumed |= {life.effect for life in new.values()}
                self._groups.resume(new)

    def last(self, name: str) -> Life | None:
        """The last life that is known of this process."""
        return self.lasts().get(name)

    def lasts(self) -> Mapping[str, Life]:
        """The last life of each process; one that stands for another name by now, or was renamed, is that one's."""
        return _by_new_names(lives := self._by_first_names(), self._renames(lives))

    def renamed(self) -> Mapping[str, tuple[str, ProcessId]]:
        """By their new names, what processes were called that live, and who stands for them.

        The log decides, and no command line: a process may show what it likes.
        """
        lives, mains = self._by_first_names(), self._mains()
        found = dict[str, tuple[str, ProcessId]]()
        for old, new in self._renames(lives).items():
            whole = (mains.get(old), lives[old].found)
            if one := next((one for one in whole if one and is_alive(one)), None):
                found[new] = old, one
        return found

    def _renames(self, lives: Mapping[str, Life]) -> Mapping[str, str]:
        """The new name of each that is no longer in the settings: what starts the same there, and was never started.

        One that was, and is dead, is the new name of what lives: it may have been called so before.
        """
        guarded = self._guarded()
        alike = self._alike_of(guarded)
        olds = list(self._unguarded_of(guarded, alike, lives))
        if not olds:
            return {}
        mains, renames = self._mains(), dict[str, str]()
        begun = lives.keys() | mains.keys()

        @cache  # every old name is asked for with every new one: of sixty each that is thousands of looks at /proc
        def lives_on(name: str) -> bool:
            life = lives.get(name)
            return any(one and is_alive(one) for one in (mains.get(name), life and life.found))

        wanted = {lives[old].settings for old in olds}
        news = {one: sorted(filterfalse(lives_on, alike[one]), key=begun.__contains__) for one in wanted}
        olds.sort(key=lambda name: (lives_on(name), lives[name].found.started), reverse=True)
        for old in olds:
            fit = news[lives[old].settings]
            if new := next((name for name in fit if name not in begun or lives_on(old)), None):
                fit.remove(new)
                renames[old] = new
        return renames

    def _by_first_names(self) -> Mapping[str, Life]:
        recorded, earlier = self._recorded(), self._groups.earlier() if self._groups else _NONE
        # Once the log knows it, that alone says who it belongs to: it may be another name's by now.
        begun = self._unrecorded
        unrecorded = self._unrecorded_of(recorded, begun)
        if self._unrecorded is begun:  # else one was begun while a thread was at this
            self._unrecorded = unrecorded
        return self._lives_of(recorded, earlier, unrecorded)

    async def members(self, name: str) -> tuple[ProcessId, ...]:
        """Those of the last life of this process that are in its control group; none where there is none."""
        life = self.last(name)
        if not self._groups or not life or not self._groups.has_members(life.effect):
            return ()  # mostly nobody is left of who has died: a thread would cost the restart time
        return await in_process_thread(self._groups.members, life.effect)

    def end_of(self, name: str, found: ProcessId) -> str:
        """How this process of it ended, in words, with what the kernel tells of its life; empty if that is not known."""
        ended, life = self.spawner.end_of(found), self.last(name)
        if not (ended.endswith("SIGKILL") and self._groups and life and life.found == found):
            return ended
        if not (number := self._groups.oom_kills(life.effect)):
            return ended
        # Whether it was one of these, or somebody else killed it later, nobody tells.
        return (
            f"{ended} (out of memory, the kernel has killed {count(number, 'process')} of it since its start)"
        )

    def in_background(self, process: ProcessSettings, stood: ProcessId | None) -> ProcessEnded | None:
        """How its last start ended, if it went into the background and nobody has stood for it since; else None.

        stood: who stood for the process last.
        """
        life = self.last(process.name) if process.start else None
        if life is None or (stood and stood != life.found and stood.started >= life.found.started):
            return None
        ended = early_exit(self.spawner, process, life.found)
        return ended if ended and not ended.code else None

    def is_left(self, process: ProcessSettings, one: ProcessId, stood: ProcessId | None) -> bool:
        """Whether this came out of a life that is over, while nobody stands for the process: then it is never found for it.

        stood: who stood for it last. A life is over when its main process is dead: only a start that went into the
        background may leave another one. Of a start that the log doesn't know (the disk was full), what has only been
        forked is no main process.
        """
        life, is_open = self.last(process.name), self.in_background(process, stood) is not None
        bearer = self._bearer_of(one)
        if life and ((bearer and bearer.effect == life.effect) or self.holds(process.name, one.pid)):
            return not is_open
        if bearer and self.home_marks.name_of(bearer) == process.name:
            seen = read_stat(one.pid)
            is_older = life is not None and one.started < life.found.started
            return is_older or seen is None or not seen.has_executed
        heads = (stood, life.found if life and not is_open else None)
        return any(head is not None and is_led_by(one.pid, head) for head in heads)

    def may_be_unrecorded(self, name: str, one: ProcessId, known: ProcessId | None) -> bool:
        """Whether a bearer of this name's mark may be a start that the log misses, and not one that it has the end of.

        The log says of its effect that it was begun, and no more. Or it knows nothing of that effect (the disk was full, the
        log is gone): a group shows then that Pulse began it, or that the name is new to the log, or that the effect is
        newer than that of the last life: whoever was given the marks of a life that is over bears an older one. known:
        whom the log knows.
        """
        bearer, life = self._bearer_of(one), self.last(name)
        if bearer is None or (known and one.started <= known.started):
            return False
        if self.begun().get(bearer.effect) == name:
            return True
        if life is None:
            return known is None or self._is_in_group(bearer.effect, one.pid)
        if bearer.effect == life.effect or one.started <= life.found.started:
            return False
        # Ids of effects begin with their time.
        is_newer = bearer.effect > life.effect and self.home_marks.name_of(bearer) == name
        return is_newer or self._is_in_group(bearer.effect, one.pid)

    def adopt(self, name: str, one: ProcessId, settings: str) -> None:
        """Have the start that the log misses for the last life of this name; settings: the sum of its settings."""
        if bearer := self._bearer_of(one):
            self.begin(name, Life(bearer.effect, one, settings))

    async def find_starts(self, name: str) -> tuple[ProcessId, ...]:
        """Those that bear the mark of this name, or are in a group of its lives: session leaders, then the oldest."""

        marks = self.home_marks
        marked = await find_bearers(which=lambda one: name == (marks.name_of(one) or marks.name_before(one)))
        grouped = [one.found for one in self._in_groups() if self.home_marks.name_of(one) == name]
        found = {*marked, *grouped}
        return tuple(sorted(found, key=lambda one: (session_of(one.pid) != one.pid, one.started, one.pid)))

    def _bearer_of(self, one: ProcessId) -> Bearer | None:
        """Of which life it is, and of which process that was: as its group tells, else by its marks."""
        grouped = (bearer for bearer in self._grouped or () if bearer.found == one)
        return next(grouped, None) or bearer_of(one.pid)

    def _in_groups(self) -> tuple[Bearer, ...]:
        """Who is in the group of a life whose first process is dead, or that the log doesn't know, as of now."""
        if self._groups:
            standing = {life.effect for life in self.lasts().values() if is_alive(life.found)}
            found = self._groups.members_but_of(standing)
            self._grouped = tuple(self.home_marks.borne(one, one.name) for one in found)
        return self._grouped or ()

    async def stop(self, process: ProcessSettings, mains: Collection[ProcessId]) -> None:
        """End these processes: its `stop_signal`, its `stop_timeout`, then SIGKILL; and with them its whole last life.

        With `kill = "main"` nothing but these. Raises PulseError if one of them can't be ended.
        """
        soft, ask = process.stop_timeout / US_PER_SECOND, signal.Signals[f"SIG{process.stop_signal}"]
        if process.kill == "main":
            await end_all(self.spawner, mains, soft, alone=True, ask=ask)
            return
        now = await in_process_thread(SHARED.asked())
        choice = self._choice(process.name, mains)
        members = descendants((pid for pid in choice(now) if pid in now), now)
        members |= {one.pid for one in await self.members(process.name) if one.pid in now}
        # A group that its leader gets the SIGTERM for gets no second one.
        led = [now[pid] for pid in members if now[pid].group == pid or now[pid].group not in members]
        others = {one.found for one in led}.difference(mains)
        ends = self._end_others(others, soft), end_all(self.spawner, mains, soft, ask=ask)
        for failed in await asyncio.gather(*ends, return_exceptions=True):
            if failed:  # a task group would say it as one of its own
                raise failed
        await self.end(process.name)

    async def _end_others(self, others: Collection[ProcessId], soft: float) -> None:
        """Who belongs to another user by now is let live: that shall not keep its main process from being started."""
        with suppress(PulseError):
            await end_all(self.spawner, others, soft)

    async def end(
        self, name: str, main: ProcessId | None = None, died: int | None = None
    ) -> tuple[ProcessId, ...]:
        """Kill what is left of all its lives, with all that comes out of it; returns what was found. Cheap if nothing is.

        At once: what holds a port, a file or a lock is in the way of the next life. main: the dead process that stood for
        it, which may be another one than was started; died: when it was dead at the latest, in clock ticks after boot.
        """
        found, is_all = await self._end_group(name)
        # If it was, nobody of the last life is elsewhere, and the others are known from the watcher's last look.
        if not is_all:
            relays = Relays(self.last(name))
            with self._marked.listen(relays.kill):
                found = await self._end_last(name, main, died, relays)
        return tuple(dict.fromkeys((*found, *await self._end_others_than_last(name))))

    async def _end_others_than_last(self, name: str) -> tuple[ProcessId, ...]:
        """Kill what `leftovers` says of a process for which nobody stands, as of the last search."""
        mains: Mapping[str, ProcessId | None] = {**self._mains(), name: None}
        left, last = self._left(mains, name).get(name, ()), self.last(name)
        if self._groups:
            for effect in {one.effect for one in left} - {last.effect if last else ""}:
                await finish_despite_cancel(in_process_thread(self._groups.end, effect))
        found = tuple(one.found for one in left)
        if any(map(is_alive, found)):
            await finish_despite_cancel(
                end_chosen(lambda now: [one.pid for one in self.leftovers(mains).get(name, ())])
            )
        return found

    async def _end_group(self, name: str) -> tuple[tuple[ProcessId, ...], bool]:
        """Kill what is in the group of its last life: who that was, and whether it was all of that life."""
        if not self._groups or (life := self.last(name)) is None:
            return (), False
        self._groups.give_up(life.effect)
        # Who was outside before it was complete is inside after that.
        is_all, inside = self._groups.is_complete(life.effect), await self.members(name)
        if inside or name not in self._begun:  # an earlier daemon may have made it
            await finish_despite_cancel(in_process_thread(self._groups.end, life.effect))
        # Root may have moved all of it elsewhere, or unmounted the groups.
        return inside, is_all and (bool(inside) or not has_group(life.found.pid))

    async def _end_last(
        self, name: str, main: ProcessId | None, died: int | None, relays: Relays
    ) -> tuple[ProcessId, ...]:
        """Kill what is left of its last life."""
        life = self.last(name)

        def may_be(pid: int, effect: str) -> bool:
            # Of many that die at once, each would search on for as long as any other one is just being started.
            return life is None or (
                effect in ("", life.effect) and self.spawner.effect_of(pid) in (None, life.effect)
            )

        if not await self._marked.finds(lambda: self._may_be_left(name, main), may_be):
            return ()
        choice = self._choice(name, (main,) if main else (), died)
        found = await finish_despite_cancel(in_process_thread(_chosen, choice, SHARED.asked()))
        if found:
            await finish_despite_cancel(end_chosen(choice))
        for _ in range(_RELAYS if relays.killed else 0):
            relays.killed.clear()
            await self._marked.search_beside()
            if not relays.killed and not self._marked.lost:
                break
        return found

    async def end_effect(self, effect: str) -> None:
        """Kill what an earlier daemon has left running of an effect: it shall not run twice at a time."""
        await self._marked.search_beside()
        mark = f"{EFFECT_MARK}={effect}"
        if trees := [in_tree(one.found, mark) for one in self._marked.bearers() if one.effect == effect]:
            await finish_despite_cancel(end_chosen(any_of(*trees)))

    def holds(self, name: str, pid: int) -> bool:
        """Whether the control group of its last life shows that this process came out of that."""
        life = self.last(name)
        return life is not None and self._is_in_group(life.effect, pid)

    def _is_in_group(self, effect: str, pid: int) -> bool:
        return self._groups is not None and self._groups.holds(effect, pid)

    def close(self) -> None:
        """Begin no more groups; what lives, lives on."""
        if self._groups:
            self._groups.close()

    def _choice(self, name: str, mains: Collection[ProcessId], died: int | None = None) -> Chosen:
        """Choose the members of the last life, and of the trees of these processes."""
        life, choices = self.last(name), list[Chosen]()
        if life:
            at = died if life.found in mains else None
            choices.append(in_tree(life.found, f"{EFFECT_MARK}={life.effect}", self._death(life.found, at)))
        for one in mains:
            if life is None or one != life.found:
                choices.append(in_tree(one, died=self._death(one, died)))
        return any_of(*choices)

    def _death(self, found: ProcessId, died: int | None) -> int | None:
        """When it was dead at the latest, None while it lives, in clock ticks after boot; if nobody knows, when it began."""
        if died is not None or is_alive(found) or self.spawner.reaps(found.pid):
            return died
        return ended.at if (ended := self.spawner.ended(found)) else found.started

    def _may_be_left(self, name: str, main: ProcessId | None) -> bool:
        life = self.last(name)
        # Who leads a session leads a group of the same number there; anybody else's may be in another session.
        numbers = {one.pid for one in (main, life.found if life else None) if one}
        return (
            any(life and one.effect == life.effect for one in self._marked.bearers())
            or any(start_time_of(pid) is not None for pid in self._marked.in_sessions(numbers))
            or (main is not None and (life is None or main != life.found) and has_group(main.pid))
        )

    def leftovers(self, mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
        """By name, the live ones of lives that are over. mains: who stands for each now; None for who is not guarded."""
        if not mains:
            return {}
        self._marked.search()
        self._in_groups()
        found = {name: [one.found for one in left] for name, left in self._left(mains).items()}
        for name, life in self.lasts().items():
            if name in mains and mains[name] is None and is_alive(life.found):
                found[name] = list(dict.fromkeys((life.found, *found.get(name, ()))))
        return {name: tuple(left) for name, left in found.items()}

    def _left(
        self, mains: Mapping[str, ProcessId | None], only: str | None = None
    ) -> Mapping[str, list[Bearer]]:
        """As of the last search. only: the one process that it is asked about, for which nobody stands; else all."""
        renames = self._renames(lives := self._by_first_names())
        names = {**{name: name for name in mains}, **renames}
        grouped = self._in_groups() if self._grouped is None else self._grouped
        known = {one.found: one for one in (*self._marked.bearers(), *grouped)}
        marked = {one.found: self.home_marks.name_of(one) for one in known.values()}
        lasts = _by_new_names(lives, renames)
        found = [one for one in known.values() if names.get(marked[one.found]) in mains]
        if (
            only is not None
        ):  # it has to do with who bears its name, or an effect of one of those: each look costs time
            its = {one.effect for one in found if names[marked[one.found]] == only}
            its |= {lasts[only].effect} if only in lasts else set()
            found = [one for one in found if one.effect in its]
        child_of = self.spawner.effect_of  # empty for who is only being started, whose life is not known yet
        bearers = [one for one in found if is_alive(one.found) and child_of(one.found.pid) != ""]
        # A life is of the process that its main one stands for, whatever that was called when it began.
        effects = {one.found: one.effect for one in bearers}
        owners = {life.effect: name for name, life in lasts.items() if name in mains}
        owners |= {effects[main]: name for name, main in mains.items() if main in effects}
        left: dict[str, list[Bearer]] = {}
        for one in bearers:
            main, life = mains[name := owners.get(one.effect, names[marked[one.found]])], lasts.get(name)
            if main is not None:
                shown = life.effect if life and life.found == main else effects.get(main)
                is_over = self._is_older(one, main, shown)
            else:
                is_over = (
                    life is None or life.effect == one.effect or self._is_older(one, life.found, life.effect)
                )
            is_grouped = is_over and self._is_in_group(one.effect, one.found.pid)
            if is_over and is_of_home(one, bearers, self._home, is_grouped):
                left.setdefault(name, []).append(one)
        return left

    def _is_older(self, one: Bearer, main: ProcessId, effect: str | None) -> bool:
        """Whether this belongs to a life before that of the main process; effect: of the main one, if it shows it.

        Another effect's mark alone shows nothing: who is in a session that was opened after the main process began, and
        still has its leader, was given that environment by somebody, unless it is in the control group of that effect.
        """
        if not effect:
            return one.found.started < main.started
        if one.effect == effect:
            return False
        leader = read_stat(session_of(one.found.pid) or 0)
        is_later = leader is not None and leader.alive and leader.started >= main.started
        return not is_later or self._is_in_group(one.effect, one.found.pid)


_NONE: Mapping[str, Life] = {}


def _chosen(choice: Chosen, asked: Callable[[], Table]) -> tuple[ProcessId, ...]:
    """Those that are chosen, of the table that was asked for. Blocks: for threads."""
    now = asked()
    return tuple(now[pid].found for pid in dict.fromkeys(choice(now)) if pid in now)


def _unrecorded(recorded: Mapping[str, Life], begun: Mapping[str, Life]) -> Mapping[str, Life]:
    """Those of these lives that the log does not know; the same object if those are all."""
    known = {life.effect for life in recorded.values()} if begun else set()
    new = {name: life for name, life in begun.items() if life.effect not in known}
    return new if len(new) < len(begun) else begun


def _by_first_names(
    recorded: Mapping[str, Life], earlier: Mapping[str, Life], begun: Mapping[str, Life]
) -> Mapping[str, Life]:
    """The last life of each process by the name under which it began: what the log says, and what it may miss."""
    owners = {life.effect: name for name, life in recorded.items()}
    missed = {  # the disk was full
        name: life
        for name, life in earlier.items()
        if name not in recorded or life.found.started > recorded[name].found.started
    }
    others = {**missed, **begun}.items()
    return {**recorded, **{name: life for name, life in others if owners.get(life.effect, name) == name}}


def _alike(guarded: Sequence[ProcessSettings]) -> Mapping[str, Sequence[str]]:
    """The names in the settings by what they start."""
    names: dict[str, list[str]] = {}
    for one in guarded:
        if one.start:
            names.setdefault(start_sum(one), []).append(one.name)
    return names


def _unguarded(
    guarded: Sequence[ProcessSettings], alike: Mapping[str, Sequence[str]], lives: Mapping[str, Life]
) -> Sequence[str]:
    """The names of lives that are no longer in the settings, where another name starts the same."""
    names = {one.name for one in guarded}
    return [name for name, life in lives.items() if name not in names and life.settings in alike]


def _by_new_names(lives: Mapping[str, Life], renames: Mapping[str, str]) -> Mapping[str, Life]:
    if not renames:
        return lives
    kept = {name: life for name, life in lives.items() if name not in renames}
    return kept | {new: lives[old] for old, new in renames.items()}
