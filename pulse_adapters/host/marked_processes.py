"""The processes that carry the marks of an effect in their environment."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.environment import EFFECT_MARK, LOG_MARK, PROCESS_MARK
from pulse_adapters.workers.proc import (
    TICKS_PER_SECOND,
    ProcStat,
    environment,
    environments,
    has_no_environment,
    is_alive,
    is_slow_to_show,
    read_stat,
    session_of,
    start_time_of,
    ticks_now,
    uid_of,
)
from pulse_adapters.workers.process_threads import in_process_thread
from pulse_adapters.workers.spawn import ProcessUser
from pulse_core.ports.host import ProcessId
from pulse_core.ports.loops import finish_despite_cancel

SETTLED = TICKS_PER_SECOND // 4
"""Clock ticks after which a process that shows no environment has none: who is just being executed shows none either."""

SHORT_S, FEW, REST = 0.002, 8, 20
"""A search is made on the loop if the last one took fewer seconds, with at most so many new processes, and so many times as
long after it as it took."""
PAUSES_S = tuple(0.002 * 2**number for number in range(7))
"""Before each further search while somebody is just being executed and shows no mark: on a busy machine that takes long."""


class Bearer(NamedTuple):
    """A process that an effect has begun.

    name: the `NAME@HOME` of the guarded process, empty for a command's; log: the identity of the log that the home had.
    """

    found: ProcessId
    effect: str
    name: str
    log: str = ""


class HomeMarks(NamedTuple):
    """The marks of the processes of one home: wherever it lies, its log decides whose they are.

    home: None for any; log: the identity of its log, empty where that is not known; since: when the first row of that was
    written, in clock ticks after boot, 0 if before the boot; knows: whether the log has a life that this effect began;
    is_served: whether a daemon runs that has the log with this identity; asking costs a look at all sockets of the machine.
    """

    home: Path | None
    log: str = ""
    since: int = 0
    knows: Callable[[str], bool] = lambda effect: False
    is_served: Callable[[str], bool] = lambda identity: False

    def variables(self, name: str) -> Mapping[str, str]:
        """Those that a start of this guarded process gets."""
        return {PROCESS_MARK: f"{name}@{self.home}", **({LOG_MARK: self.log} if self.log else {})}

    def borne(self, one: Bearer, name: str) -> Bearer:
        """This one, with the marks of a guarded process of this home."""
        return one._replace(name=f"{name}@{self.home}", log=self.log)

    def name_of(self, one: Bearer) -> str:
        """The guarded process of this home that it was begun for; empty if it is another's, or a command."""
        if self.log and one.log:
            return one.name.partition("@")[0] if one.log == self.log else ""
        # As Pulse 0.x began it, for this home or for one that lay here before.
        is_own = one.found.started >= self.since or self.knows(one.effect)
        return self._name_here(one) if is_own else ""

    def name_before(self, one: Bearer) -> str:
        """The same for a home that lay in this place before, whose log is lost; empty if it is not."""
        name = self._name_here(one)
        return name if name and self._may_be_lost(one.log) else ""

    def are_in_group(self, found: ProcessId, effect: str, log: str) -> bool:
        """Whether a life in a group of this place is of this home: another one may have lain here before.

        found: a process of it; log: the identity of the log of the home that began it, empty where that is not known.
        """
        if not self.log or log == self.log:
            return True
        return found.started < self.since and self._may_be_lost(log) if log else self.knows(effect)

    def are_on(self, name: str, pid: int) -> bool:
        """Whether a process has those of this guarded process."""
        raw, found = environment(pid), ProcessId(pid, start_time_of(pid) or 0)
        marks = (variable_in(raw, mark) for mark in (EFFECT_MARK, PROCESS_MARK, LOG_MARK))
        return self.name_of(Bearer(found, *marks)) == name

    def _may_be_lost(self, log: str) -> bool:
        """Whether this is another log of this PID namespace, which nobody serves elsewhere."""
        is_other = log != self.log and log.rpartition(".")[2] == self.log.rpartition(".")[2]
        return bool(self.log) and is_other and not self.is_served(log)

    def _name_here(self, one: Bearer) -> str:
        name, _, home = one.name.partition("@")
        return name if self.home is None or home == str(self.home) else ""


class _Read(NamedTuple):
    """What was read of a process: the inode it was listed with, the session it was in, and whether it bears marks.

    inode: 0 of one that shows more later.
    """

    inode: int
    session: int
    bearer: Bearer | None


class MarkedProcesses:
    """The processes that carry the marks of an effect; each process of the machine is read once, and kept by its inode.

    So a search costs a listing of /proc, 0.3 ms for a hundred processes, and not ten times that. What was begun after the
    listing is in none; then who has begun it was listed, and is either found or `lost`.
    """

    def __init__(self) -> None:
        self._read: dict[int, _Read] = {}
        self.unsure: set[int] = set()
        """Who showed no environment at the last search, as who is just being executed does."""
        self.hanging: set[int] = set()
        """Who did not answer at the last search: no search waits for it."""
        self.lost: dict[int, str] = {}
        """Who was gone at the last search before it could be read, and each bearer that was, with its effect: it may have
        forked."""
        self._begun, self._newest = 0, 0
        """How many searches have begun, and the number of the one whose findings are kept."""
        self._searching, self._numbers = asyncio.Lock(), threading.Lock()
        self._ended, self._took = 0.0, float("inf")
        """When the last search was over, and how many seconds it took."""
        self._listeners: list[Callable[[ProcStat, Bearer], None]] = []

    @contextmanager
    def listen(self, listener: Callable[[ProcStat, Bearer], None]) -> Iterator[None]:
        """Meanwhile tell this of each bearer that a search finds anew, at once, in its thread, while it is surely there."""
        self._listeners = [*self._listeners, listener]
        try:
            yield
        finally:
            self._listeners = [one for one in self._listeners if one is not listener]

    def search(self, most: int | None = None) -> bool:
        """Look for new processes, perhaps in a thread: what it finds replaces what the last one found when it is over.

        Others may go on at the same time: of one that began later, and was over sooner, nothing is replaced. most: those
        that are new, at most; where there are more, nothing is searched. Whether it was.
        """
        began = time.monotonic()
        with self._numbers:
            number = self._begun = self._begun + 1
        # As of the listing: who dies after that is `lost`, though another search may know it first.
        before = self._read
        entries = SPARE.read(lambda: list(os.scandir("/proc")))
        listing = {int(one.name): one.inode() for one in entries if one.name.isdecimal()}
        listing.pop(os.getpid(), None)
        if most is not None and len(listing.keys() - before.keys()) > most:
            return False
        found = self._look(listing, before)
        with self._numbers:
            if number > self._newest:
                self._newest = number
                self._read, self.unsure, self.hanging, self.lost = found
            self._ended = time.monotonic()
            self._took = self._ended - began
        return True

    def read_also(self, pids: Iterable[int]) -> None:
        """Read these, too, which may have begun after the last search, or be read anew: all is told of them as of others."""
        listing = dict[int, int]()
        for pid in pids:
            with suppress(OSError):  # it is gone
                listing[pid] = os.stat(f"/proc/{pid}").st_ino
        read, unsure, hanging, lost = self._look(listing, self._read)
        self._read |= read
        self.unsure, self.hanging = (self.unsure - listing.keys()) | unsure, self.hanging | hanging
        self.lost |= lost

    def _look(
        self, listing: Mapping[int, int], before: Mapping[int, _Read]
    ) -> tuple[dict[int, _Read], set[int], set[int], dict[int, str]]:
        """What there is to know of these, given their inodes and what was read; who of them is unsure, hanging and lost."""
        kept: dict[int, _Read] = {}
        unsure, lost = set[int](), dict[int, str]()
        known = {pid for pid, read in before.items() if listing.get(pid) == read.inode}
        # The newest may be gone soonest.
        unread = sorted(listing.keys() - known, reverse=True)
        # As of before they are read: what is executed after that shows another environment.
        being_begun = {pid for pid in unread if (seen := read_stat(pid)) and _is_being_begun(seen)}
        new = dict(environments(unread))
        hanging = {pid for pid, raw in new.items() if raw is None and is_slow_to_show(pid)}
        for pid, inode in sorted(listing.items(), reverse=True):
            read = before.get(pid)
            if read is None or pid not in known:
                raw, seen = new[pid], read_stat(pid)
                if seen is None or not seen.alive:
                    lost[pid] = ""
                if seen is None or pid in hanging:
                    continue
                is_new = seen.alive and ticks_now() - seen.started <= SETTLED
                if raw is None or (is_new and _may_show_more(seen, raw, pid in being_begun)):
                    unsure.add(pid)
                    continue
                # Who shows none for long is the kernel's, or has emptied it. One that has waited long for its disk or a
                # processor is still being executed: nobody waits for that, and the next search reads it anew.
                is_executed = pid not in being_begun and (bool(raw) or has_no_environment(pid) is not None)
                is_over = is_executed or not seen.alive or seen.of_kernel
                read = _Read(inode if is_over else 0, seen.session, _bearer(seen, raw))
                if read.bearer:
                    for listener in self._listeners:
                        listener(seen, read.bearer)
            elif read.bearer and not is_alive(read.bearer.found):
                lost[pid] = read.bearer.effect
                read = read._replace(bearer=None)
            kept[pid] = read
        return kept, unsure, hanging, lost

    async def search_beside(self) -> None:
        """A search in a thread that begins after this moment: one for all who wait for it, since they may come in crowds.

        One that fails is nobody's but its caller's: the next who waits makes another. A short one is made at once where the
        last one was long ago: the loop does much else until a thread is heard.
        """
        is_alone = not self._searching.locked() and time.monotonic() - self._ended > REST * self._took
        if is_alone and self._took < SHORT_S and self.search(most=FEW):
            return
        begun = self._begun
        async with self._searching:
            if self._newest <= begun:
                await finish_despite_cancel(in_process_thread(self.search))

    async def finds(
        self, is_found: Callable[[], bool], may_be: Callable[[int, str], bool] = lambda pid, effect: True
    ) -> bool:
        """Whether this holds after a search, or after further ones while that may have missed somebody.

        may_be: whether a process that showed no marks (the effect is empty then), or that is gone, may be one of those that
        are searched for, or have begun one.
        """
        for number, pause in enumerate(PAUSES_S):
            await self.search_beside()
            if is_found():
                return True
            is_unsure = any(may_be(pid, "") for pid in {*self.unsure, *(() if number else self.hanging)})
            if not (is_unsure or any(may_be(*one) for one in self.lost.items())):
                return False
            if is_unsure:
                await asyncio.sleep(pause)
        await self.search_beside()
        return is_found()

    def bearers(self) -> Iterator[Bearer]:
        """Those that were alive at the last search."""
        return (read.bearer for read in self._read.values() if read.bearer)

    def session(self, pid: int) -> int | None:
        """The session that a process was in when it was read, or one of its own number by now; None if it was not read."""
        return read.session if (read := self._read.get(pid)) else None

    def in_sessions(self, numbers: Container[int]) -> Iterator[int]:
        """Those of the last search that are in one of these sessions now; who is gone by now is `lost`.

        A process joins no session but one of its own number: so who was in another one when it was read needs no look.
        """
        for pid in (
            *self.unsure,
            *self.hanging,
            *(pid for pid, read in self._read.items() if read.session in numbers),
        ):
            if (session := session_of(pid)) is None:
                self.lost[pid] = ""
            elif session in numbers:
                yield pid


def _is_being_begun(seen: ProcStat) -> bool:
    """Whether it was forked by this one, whose environment it shows until it is executed with its own."""
    return seen.parent == os.getpid() and not seen.has_executed


def _may_show_more(seen: ProcStat, raw: bytes, is_being_begun: bool) -> bool:
    """Whether who shows this environment may show another one later, as who is just being executed does."""
    if raw:
        return is_being_begun
    if seen.of_kernel or (has_no_environment(seen.pid) and not is_being_begun):
        return False
    # Root alone is ever shown that of another user's process.
    return (own := os.geteuid()) == 0 or uid_of(seen.pid) in (own, None)


def bearer_of(pid: int) -> Bearer | None:
    """What the marks of a live process say; None if it has none, or is gone."""
    raw, seen = environment(pid), read_stat(pid)
    return _bearer(seen, raw) if seen else None


def _bearer(seen: ProcStat, raw: bytes) -> Bearer | None:
    effect = variable_in(raw, EFFECT_MARK) if seen.alive else ""
    if not effect:
        return None
    return Bearer(seen.found, effect, variable_in(raw, PROCESS_MARK), variable_in(raw, LOG_MARK))


def variable_in(raw: bytes, variable: str) -> str:
    """The value of a variable of an environment; empty if it is not there."""
    return os.fsdecode(raw.partition(f"\0{variable}=".encode())[2].partition(b"\0")[0])


def variables_in(raw: bytes) -> Mapping[str, str]:
    """All variables of an environment."""
    pairs = (os.fsdecode(one).partition("=") for one in raw.split(b"\0") if one)
    return {name: value for name, _, value in pairs}


_MARKED = WeakKeyDictionary[asyncio.AbstractEventLoop, MarkedProcesses]()


async def find_bearers(
    *,
    effect: str = "",
    which: Callable[[Bearer], bool] = lambda _: True,
    anybody: bool = False,
    user: ProcessUser | None = None,
) -> tuple[ProcessId, ...]:
    """Those of a user, or of this one, that bear the mark of an effect, or of any: session leaders, then the oldest.

    Anybody can set it: it is a hint to what the log says. anybody: those of other users, too, as far as this one may read
    their environments. Of a crowd that asks at once, each would read all processes of the machine: one search is for all.
    """
    uid = user.uid if user else os.getuid()
    marked = _MARKED.setdefault(asyncio.get_running_loop(), MarkedProcesses())

    def found() -> list[ProcessId]:
        return [
            one.found
            for one in marked.bearers()
            if effect in ("", one.effect) and which(one) and (anybody or uid_of(one.found.pid) == uid)
        ]

    await marked.finds(lambda: bool(found()), lambda pid, borne: not effect or borne in ("", effect))
    return tuple(sorted(found(), key=lambda one: (session_of(one.pid) != one.pid, one.started, one.pid)))
