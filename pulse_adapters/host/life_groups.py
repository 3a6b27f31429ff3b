"""Control groups of the lives of guarded processes, where they may be made: whatever a member does, it stays one.

Where the C library can do that, a process is born in its group, which is complete then: what it holds is all that there is.
Else, and with a user, limits or the like of its own, it is started first and moved then, in a thread: the kernel takes about
ten milliseconds for that, which whoever waits for a dead process shall not lose. What it has forked meanwhile is moved after
it, until a search finds nobody outside, and has lost nobody who may have forked while it went on. That is done in another
thread: whatever else is started in the same moment waits for no search.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Container, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.host.launch import Birthplace
from pulse_adapters.host.life_evidence import effects_in_groups
from pulse_adapters.host.marked_processes import Bearer, HomeMarks, MarkedProcesses, bearer_of
from pulse_adapters.workers.control_group import (
    CONTROLLERS,
    LIFE,
    UNLIMITED,
    ControlGroup,
    GroupLimits,
    NoControlGroups,
    all_home_groups,
    home_groups,
    home_name,
    own_group,
)
from pulse_adapters.workers.posix_spawn import can_spawn_in_group
from pulse_adapters.workers.proc import children, is_alive, read_stat, start_time_of, ticks_now
from pulse_adapters.workers.threads import Pool
from pulse_core.model.shortages import shortage
from pulse_core.ports.host import Life, ProcessId

PASSES = 20
"""Searches for who is outside, at most; who forks faster is known by session and mark."""
LOOKS = 10
"""Listings of the own group in a search, at most: where others fork there all the time, each has some that were not read."""
PAUSE_S, MAX_PAUSE_S = 0.02, 0.08
"""Seconds between two searches: more and more while they find nobody, since each takes time from the loop."""
MOST_REMOVED = 1_000
"""Groups that were removed of which it is known that they were complete: many may die at once, and wait for their starts."""
READY_S = 0.2
"""Seconds that the first start waits for the folder in which its group is made."""
PATIENCE_S = 5.0
"""Seconds after which the kernel itself holds who is left in a group."""


_UNGROUPED = (
    "process {} is in no control group of its own ({}): what it detaches, with a session and an environment of its own, is"
    " not ended with it"
)


class _OwnMembers(NamedTuple):
    """What a search saw of those that are in the own group itself, in which lives are started.

    here: the live ones that nobody has moved, nor they themselves; bearers and sessions: whose effect, and in which session,
    each is; doubtful: of whom that is not known.
    """

    here: frozenset[int]
    bearers: Mapping[str, set[int]]
    sessions: Mapping[int, set[int]]
    doubtful: frozenset[int]


class LifeGroups:
    """The groups of a home's lives, each named by the effect that began it. They are made in a thread of their own.

    marks: of the home; by its log those lives are found that daemons of it have begun in other places, and those in this
    place are told from others', whose log was here.
    folders: the names of the folders in which there are groups of it. effect_of: the effect of a child that is or was just
    waited for, empty for a command; None of any other process. failed: is told, in the loop that begins a life, whose
    could have no group though there are some, and why.
    """

    def __init__(
        self,
        home: Path,
        marks: HomeMarks | None = None,
        effect_of: Callable[[int], str | None] = lambda pid: None,
        failed: Callable[[str, str], None] = lambda whose, words: None,
    ) -> None:
        self._home, self._marks, self._marked = home, marks or HomeMarks(home), MarkedProcesses()
        self._effect_of, self._failed = effect_of, failed
        self._name = ""
        with suppress(OSError):  # there is no such home
            self._name = home_name(home)  # which may be moved under the daemon
        self.folders = frozenset(filter(None, [self._name]))
        self._groups: dict[str, ControlGroup] = {}
        self._complete: set[str] = set()
        self._removed: dict[str, None] = {}
        """Those that were complete, and were removed since nobody was left in them: the newest."""
        self._pending: set[str] = set()
        self._over: set[str] = set()
        self._thread, self._searches = Pool(1, "life groups"), Pool(1, "life searches")
        self._is_closed = False
        self._ahead = deque[Life]()
        """Those that were moved, and are to be completed by the searching thread: in one search for all."""
        self._folder: asyncio.Future[ControlGroup] | None = None
        self._folders: list[ControlGroup] = []
        self._made: tuple[ControlGroup, ...] = ()
        """The folder in which this daemon makes them, once it has made one."""
        self._earlier: dict[str, Life] | None = None

    def fault(self) -> str:
        """Why limits have no effect on what is in a group; empty if they have. Blocks: for threads."""
        try:
            missing = frozenset(CONTROLLERS) - self._made_folder().controllers()
        except (NoControlGroups, OSError) as error:
            return str(error)
        return f"control groups here don't limit {', '.join(sorted(missing))}" if missing else ""

    @asynccontextmanager
    async def birthplace(
        self, effect: str, limits: GroupLimits = UNLIMITED, may_enter: bool = False, name: str = ""
    ) -> AsyncIterator[Birthplace | None]:
        """A new group in which the life that this effect begins can be born; None where that is not possible.

        may_enter: else its first process may enter it by itself, which takes longer; then `begin` must be called. name: of
        the guarded process.
        """
        is_born = can_spawn_in_group()
        folder = await self._ready_folder() if is_born or may_enter else None
        if folder is None:
            yield None
            return
        self._pending.add(effect)  # nobody removes it meanwhile
        try:
            group = folder.child(LIFE + effect, limits)
            self._tell_started(group, name)
            entrance = "" if is_born else f"{group.path}/cgroup.procs"
            place = Birthplace(os.open(group.path, os.O_RDONLY | os.O_DIRECTORY), entrance)
        except OSError:
            self._pending.discard(effect)
            yield None
            return
        is_left = True
        try:
            yield place
            is_left = not entrance
            if place.is_used:
                self._groups[effect] = group
                self._complete.add(effect)
        finally:
            os.close(place.descriptor)
            if is_left:
                self._pending.discard(effect)

    async def _ready_folder(self) -> ControlGroup | None:
        """The folder of the home's groups, which takes time to make the first time; None if there is none."""
        if self._folder is None:
            try:
                loop = asyncio.get_running_loop()
                self._folder = loop.run_in_executor(self._thread, self._made_folder)
            except RuntimeError:  # it was closed meanwhile
                return None
        if not self._folder.done():  # else the loop would do other things before the start
            await asyncio.wait([self._folder], timeout=READY_S)
        return self._folder.result() if self._folder.done() and not self._folder.exception() else None

    def _made_folder(self) -> ControlGroup:
        self._made = (home_groups(self._home, self._name, self._marks.log),)
        return self._made[0]

    def _tell_started(self, group: ControlGroup, name: str, life: Life | None = None) -> None:
        group.tell_log(self._marks.log)
        group.tell_started(name, life)

    def begin(self, life: Life, limits: GroupLimits = UNLIMITED, name: str = "") -> None:
        """Have a new life moved into a group of its own, and the groups removed of those that are over."""
        self._pending.add(life.effect)
        loop, failed = asyncio.get_running_loop(), partial(self._failed, name or life.effect)
        tell = partial[object](loop.call_soon_threadsafe, failed)
        with suppress(RuntimeError):  # it was closed meanwhile
            self._thread.submit(self._begin, life, limits, name, tell)

    def resume(self, lives: Mapping[str, Life]) -> None:
        """Have those living ones moved that nobody has moved: the daemon that began them was killed before it did."""
        with suppress(NoControlGroups, OSError):
            here = own_group().own_members()
            for name, life in lives.items():
                if life.found.pid in here and is_alive(life.found):
                    self.begin(life, name=name)

    def _begin(self, life: Life, limits: GroupLimits, name: str, tell: Callable[[str], object]) -> None:
        try:
            self._enter(life, limits, name)
        except NoControlGroups:  # as `status` says
            pass
        except OSError as error:
            with suppress(RuntimeError, OSError):  # the loop has ended, or nobody can look now
                if is_alive(life.found):
                    tell(_UNGROUPED.format(life.found.pid, error.strerror))
        self._ahead.append(life)
        try:
            self._searches.submit(self._complete_groups)
        except (RuntimeError, OSError):  # it was closed meanwhile, or there are no more threads
            self._settle(life)

    def _enter(self, life: Life, limits: GroupLimits, name: str) -> None:
        if life.effect in self._complete:  # it was born there
            return self._tell_started(self._groups[life.effect], name, life)
        group = self._groups[life.effect] = self._made_folder().child(LIFE + life.effect, limits)
        self._tell_started(group, name, life)
        if is_alive(life.found):
            self._add(group, life.found.pid)
        return None

    def _complete_groups(self) -> None:
        """Complete all that wait for it, and those that come meanwhile: where many are begun at once, no search for each."""
        passes, pause = dict[Life, int](), PAUSE_S
        try:
            while not self._is_closed and (new := self._waiting()) | passes.keys():
                passes |= dict.fromkeys(new, PASSES)
                over, is_moved = list(passes), False
                with suppress(NoControlGroups, OSError):
                    over, is_moved = self._gather(passes)
                    if new:  # whose first process is gone, as of a daemon, may have had others, who are in there now
                        self._remove_empty({life.effect for life in over})
                for life in [life for life, left in passes.items() if left == 1 or life in over]:
                    del passes[life]
                    self._settle(life)
                passes = {life: left - 1 for life, left in passes.items()}
                pause = PAUSE_S if is_moved or new else min(2 * pause, MAX_PAUSE_S)
                if passes:
                    time.sleep(pause)
        finally:
            for life in {*passes, *self._waiting()}:
                self._settle(life)

    def _waiting(self) -> set[Life]:
        return {self._ahead.popleft() for _ in range(len(self._ahead))}

    def _settle(self, life: Life) -> None:
        self._pending.discard(life.effect)
        self._over.discard(life.effect)

    def _remove_empty(self, but: Container[str]) -> None:
        """Remove the groups that are over; but: the effects of those that are pending, and may be over all the same."""
        for one in list(self._made_folder().children()):
            effect = one.name.removeprefix(LIFE)
            is_pending = effect in self._pending and effect not in but
            if effect == one.name or is_pending or one.is_populated():
                continue
            if one.remove():
                self._groups.pop(effect, None)
                if effect in self._complete:
                    self._removed[effect] = None
                    self._complete.discard(effect)
        for effect in list(self._removed)[:-MOST_REMOVED]:
            del self._removed[effect]

    def _gather(self, lives: Collection[Life]) -> tuple[list[Life], bool]:
        """Move who is outside of the groups of these; those that need no further search, and whether anybody was moved."""
        ahead = {
            life: group
            for life in lives
            if life.effect not in self._complete and (group := self._groups.get(life.effect))
        }
        over, is_moved = [life for life in lives if life not in ahead], False
        if not ahead:
            return over, is_moved
        seen = self._own_members()
        for life, group in ahead.items():
            outside, is_sure = self._outside(life, group, seen)
            if life.effect in self._over:
                over.append(life)  # whoever was moved now would miss the end of all others
            elif is_sure and not outside:
                self._complete.add(life.effect)
                over.append(life)
            else:
                with suppress(OSError):
                    for pid in outside:
                        self._add(group, pid)
                is_moved = is_moved or bool(outside)
        return over, is_moved

    def _add(self, group: ControlGroup, pid: int) -> None:
        with suppress(ProcessLookupError):
            group.add(pid)

    def _own_members(self) -> _OwnMembers:
        """Who is gone when the group is listed matters no more: whom it has forked meanwhile is listed instead."""
        self._marked.search()
        for _ in range(LOOKS):
            here = own_group().own_members() - {0, os.getpid()}
            if not (unknown := [pid for pid in here if self._marked.session(pid) is None]):
                break
            self._marked.read_also(unknown)
        bearers, sessions = dict[str, set[int]](), dict[int, set[int]]()
        for one in self._marked.bearers():
            bearers.setdefault(one.effect, set()).add(one.found.pid)
        doubtful = set[int]()
        for pid in here:
            if (session := self._marked.session(pid)) is None:
                doubtful.add(pid)
            else:
                sessions.setdefault(session, set()).add(pid)
        return _OwnMembers(here, bearers, sessions, frozenset(doubtful))

    def _outside(self, life: Life, group: ControlGroup, seen: _OwnMembers) -> tuple[frozenset[int], bool]:
        """Who belongs to a life that has just begun, and is not in its group; and whether nobody else can be."""
        found, leader = seen.bearers.get(life.effect, set()), read_stat(life.found.pid)
        if leader is None or leader.found == life.found:  # else its number is another session's by now
            found = found | seen.sessions.get(life.found.pid, set())
        inside = group.members()
        outside = found.union(*map(children, inside)) - inside
        # Who has moved itself elsewhere stays there, and is known by session and mark.
        is_all = not any(start_time_of(pid) is not None for pid in outside - seen.here)
        # Commands that are begun all the time, as of probes, would else have every life searched for as often as may be.
        doubtful = {pid for pid in seen.doubtful - inside if self._effect_of(pid) in (None, life.effect)}
        return seen.here & outside, is_all and not doubtful

    def is_complete(self, effect: str) -> bool:
        """Whether all of the life that this effect began is in its group, or was, and nobody is left of it."""
        return effect in self._complete or effect in self._removed

    def has_members(self, effect: str) -> bool:
        """Whether somebody lives in the group of the life that this effect began."""
        return (group := self._groups.get(effect)) is not None and group.is_populated()

    def members(self, effect: str) -> tuple[ProcessId, ...]:
        """The live processes there. Blocks, as there may be thousands: for threads."""
        if not self.has_members(effect):
            return ()
        there = (read_stat(pid) for pid in self._groups[effect].members())
        return tuple(one.found for one in there if one and one.alive)

    def oom_kills(self, effect: str) -> int:
        """How many processes of the life that this effect began the kernel is known to have killed for want of memory."""
        return self._groups[effect].oom_kills() if effect in self._groups else 0

    def earlier(self) -> Mapping[str, Life]:
        """The newest lives that daemons of this home have begun before, wherever they ran. Blocks the first time.

        The log may know nothing of them: the disk was full.
        """
        if self._earlier is None:
            earlier = dict[str, Life]()
            try:
                folders = all_home_groups(self._home, self._marks.log)
                self._folders = [one for one in folders if os.stat(one.path).st_uid == os.geteuid()]
                self.folders |= {one.name for one in self._folders}
            except OSError as error:  # the home is gone
                if shortage(error):  # or nobody can look at this moment
                    return {}
            for _, group in self._each():
                name, life = group.started()
                if life and group.is_populated() and self._is_of_home(life.effect, group):
                    earlier[name] = max(life, earlier.get(name, life), key=lambda one: one.found.started)
            self._earlier = earlier
        return self._earlier

    def _each(self) -> Iterator[tuple[str, ControlGroup]]:
        folders = {one.path: one for one in (*self._folders, *self._made)}
        for group in (one for folder in folders.values() for one in folder.children()):
            if group.name.startswith(LIFE):
                yield group.name.removeprefix(LIFE), group

    def members_but_of(self, effects: Container[str]) -> Iterator[Bearer]:
        """Who is in any group of a guarded process's life, of whichever daemon, but for those that these effects began.

        Whatever it has done to its environment and its session: only Pulse has put it there. name: the process's alone.
        """
        self.earlier()
        for effect, group in self._each():
            if effect in effects or effect in self._pending or not group.is_populated():
                continue
            if (name := group.started()[0]) and self._is_of_home(effect, group):
                there = (read_stat(pid) for pid in group.members())
                yield from (Bearer(one.found, effect, name) for one in there if one and one.alive)

    def _is_of_home(self, effect: str, group: ControlGroup) -> bool:
        """Whether a life is this home's, as its group says, or a member's mark: another log may have been in this place."""
        log, life = group.log(), group.started()[1]
        if not log and self._marks.log:
            log = next((one.log for one in map(bearer_of, group.members()) if one and one.log), "")
        first = life.found if life else ProcessId(0, ticks_now())
        return self._marks.are_in_group(first, effect, log)

    def holds(self, effect: str, pid: int) -> bool:
        """Whether a process is in the group of this life, which an earlier daemon may have made."""
        return effect in self.holding(pid)

    def holding(self, pid: int) -> Collection[str]:
        """The effects that began the lives in whose groups a process is."""
        return effects_in_groups(pid, self.folders)

    def give_up(self, effect: str) -> None:
        """Have nobody more moved into the group of a life that is over: who bears its mark from now on is none of it."""
        if effect in self._pending:
            self._over.add(effect)

    def end(self, effect: str) -> None:
        """Kill all that is in the group of this life, which an earlier daemon may have made. Blocks: for threads."""
        self.give_up(effect)
        with suppress(NoControlGroups, OSError):
            group = self._groups.get(effect) or self._earlier_group(effect)
            if os.getpid() in group.members():
                return  # this daemon was started by somebody in there
            until = time.monotonic() + PATIENCE_S
            while not group.end(PATIENCE_S) and time.monotonic() < until:
                pass  # somebody was moved into it just after it was empty

    def _earlier_group(self, effect: str) -> ControlGroup:
        earlier = (ControlGroup(os.path.join(one.path, LIFE + effect)) for one in self._folders)
        there = next((group for group in earlier if os.path.isdir(group.path)), None)
        return there or self._made_folder().child(LIFE + effect)

    def close(self, wait: bool = False) -> None:
        """Make no more of them. wait: until those are made that were begun."""
        self._is_closed = not wait
        for thread in (self._thread, self._searches):
            thread.shutdown(wait=wait, cancel_futures=not wait)
