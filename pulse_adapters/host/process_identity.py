"""Which of the processes that were found is the guarded one: whose it must be, and what its `start` would produce."""

import os
import zlib
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from pulse_adapters.host.marked_processes import variable_in
from pulse_adapters.host.process_search import (
    argv_of,
    command_line_of,
    find_matching,
    joined_argv,
    outside_pulse,
)
from pulse_adapters.workers.environment import START_MARK
from pulse_adapters.workers.proc import environment, live_processes, own_line, uid_of
from pulse_adapters.workers.process_access import as_its_user
from pulse_adapters.workers.process_memory import MEMORY
from pulse_adapters.workers.users import NAME_S, expand_home, find_user, user_name
from pulse_core.model.errors import PulseError
from pulse_core.model.names import INDISTINCT
from pulse_core.model.pattern import search_pattern
from pulse_core.model.text import count
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.settings.processes import ProcessSettings

T = TypeVar("T")

_HANGS_S = 10.0
"""Seconds for which nobody is started while the one that is searched for may be among those that hang."""
SHOWN = 5
"""How many of those that nobody can tell apart are named."""


class Choice(NamedTuple):
    """The process that it is, if `doubt` is empty; else all that may be it, and why nobody can tell.

    unlike: those that match where none is found, and that `start` would not produce; others: those that match beside it,
    in words.
    """

    found: tuple[ProcessId, ...]
    words: str
    doubt: str = ""
    unlike: tuple[ProcessId, ...] = ()
    others: str = ""

    def told_in(self, sight: ProcessObservation) -> ProcessObservation:
        """The observation with what this says."""
        return sight._replace(found=self.found, detail=self.words, doubt=self.doubt, unlike=self.unlike)


def is_known_by_start_alone(process: ProcessSettings) -> bool:
    """Whether the settings name nothing to find it by: it is what was started last."""
    return not (process.match or process.pid_file or process.systemd_unit or process.tcp)


def choose(
    process: ProcessSettings,
    hits: Sequence[ProcessId],
    is_marked: Callable[[int], bool] | None = None,
    left: Container[int] = (),
    holder: Callable[[ProcessId], str] = lambda _: "",
    is_over: Callable[[ProcessId], bool] = lambda _: False,
) -> Choice:
    """Choose among those that match: of the right user, none that came out of another one, and what `start` produces.

    is_marked: whether one has the marks of an earlier start of it, if that counts as a helper, not as it; left:
    the start times of what the last start may have left in the background, which shows another command line; holder:
    the name of the other process that one is held for, empty if it is free; is_over: whether one is left of a life of it
    that is over.
    """
    mine = [one for one in hits if not not_of_user(process, one.pid)]
    if not mine:
        other = next((words for one in hits if (words := not_of_user(process, one.pid))), "")
        return Choice((), f"no process matches{f'; {other}' if other else ''}")
    if over := [one for one in mine if is_over(one)]:
        mine = [one for one in mine if one not in over]
        if not mine:
            return Choice((), f"no process matches but what an earlier start has left: {_pids(over)}")
    if held := {one: name for one in mine if (name := holder(one))}:
        mine = [one for one in without_offspring(mine, held) if one not in held]
        if not mine:
            return Choice((), "; ".join(held_words(one, name) for one, name in islice(held.items(), SHOWN)))
    produced = {one for one in mine if _is_produced(process, one.pid, is_marked)}
    if is_marked:
        mine = [one for one in mine if one in produced or not is_marked(one.pid)]
    heads = without_offspring(mine)
    likely = without_offspring([one for one in mine if one in produced])
    likely = likely or [one for one in heads if one.started in left]
    if len(likely) == 1:
        others = _others([one for one in heads if one != likely[0]])
        return Choice((likely[0],), f"process {likely[0].pid} matches", others=others)
    if not heads:
        return Choice((), "no process matches but what an earlier start has left")
    if likely:
        doubt = f"{len(likely)} processes match: {_pids(likely)}; {INDISTINCT}"
        return Choice(tuple(likely), doubt, doubt)
    if heads[1:]:
        words = f"{len(heads)} processes match, but `start` would produce none of them: {_pids(heads)}"
    else:
        words = f"process {heads[0].pid} matches, but `start` would not produce it"
    return Choice((), words, unlike=tuple(heads))


def words_of_others(
    process: ProcessSettings, main: ProcessId, hits: Sequence[ProcessId], is_marked: Callable[[int], bool]
) -> str:
    """Those that match beside the main process and came out of no start of it, in words; empty if there are none."""
    mine = [one for one in hits if one != main and not (not_of_user(process, one.pid) or is_marked(one.pid))]
    return _others([one for one in without_offspring([main, *mine]) if one != main])


async def doubtful_matches(processes: Sequence[ProcessSettings]) -> Mapping[str, str]:
    """By name, in words, where more than one process of the machine matches, or one that `start` would not produce."""
    matches = {one.name: pattern for one in processes if one.match and (pattern := search_pattern(one.match))}
    hits = await find_matching(matches) if matches else {}
    chosen = {one.name: choose(one, found) for one in processes if (found := hits.get(one.name))}
    return {
        name: "; ".join(filter(None, (one.words, one.others)))
        for name, one in chosen.items()
        if one.doubt or one.unlike or one.others or ";" in one.words
    }


def _others(found: Sequence[ProcessId]) -> str:
    if not found:
        return ""
    return f"{count(len(found), 'other')} {'match' if found[1:] else 'matches'}: {_pids(found)}"


def not_of_user(process: ProcessSettings, pid: int) -> str:
    """Why this can't be the process, in words: it is another user's, or Pulse's own; empty if it may be."""
    try:
        wanted = _wanted_user(process)
    except PulseError as error:
        return str(error)
    uid = uid_of(pid)
    if uid is not None and uid != wanted:
        return f'process {pid} belongs to another user (user = "{user_name(uid)}" would allow it)'
    if pid in own_line():
        return f"process {pid} is Pulse, or runs it"
    if outside_pulse(pid, command_line_of(pid)) is None:
        return f"process {pid} is Pulse's own, or its engine's"
    return ""


def hang_of_late(process: ProcessSettings) -> bool:
    """Whether one that may be this process has just begun to keep its command line to itself."""
    try:
        return MEMORY.is_slow(_wanted_user(process), _HANGS_S)
    except PulseError:
        return False


def _wanted_user(process: ProcessSettings) -> int:
    """The user whose a process is, by its settings. Raises PulseError."""
    if not process.user:
        return os.getuid()
    if (found := find_user(process.user, NAME_S)) is None:
        raise PulseError(f"there is no user {process.user!r}")
    return found.uid


def is_of_its_user(process: ProcessSettings, pid: int) -> bool:
    """Whether a process that a start left is the daemon's own user's, or has become that of its `user`."""
    return uid_of(pid) == os.getuid() or not not_of_user(process, pid)


def is_produced_by(start: Sequence[str], pid: int) -> bool:
    """Whether the argv of a process holds that of `start`, whatever directories and interpreter come first.

    So do the titles that servers write over it, as `nginx: master process /usr/sbin/nginx -c site.conf`. In any other one
    text the same words are an argument: those of a shell whose script names the process, as one that kills it.
    """
    wanted = [_names(word) for word in start]
    argv = [_names(word) for word in argv_of(command_line_of(pid))]
    return _holds(argv, wanted) or _holds(argv[0], _names(" ".join(start)))


def is_as_begun(process: ProcessSettings, pid: int) -> bool:
    """Whether a process is just what `start` would begin now: the same words and no more, the `env`, directory and user."""
    theirs = environment(pid)
    return (
        pid in who_show(process, {pid: words_of(pid)})
        and all(f"\0{name}={value}\0".encode() in theirs for name, value in process.env.items())
        and not (_is_elsewhere(process, pid) or not_of_user(process, pid))
    )


def words_of(pid: int) -> Sequence[str]:
    """The words that the command line of a process shows."""
    return _names(joined_argv(command_line_of(pid)).decode("utf-8", "replace"))


def who_show(process: ProcessSettings, shown: Mapping[T, Sequence[str]]) -> Iterator[T]:
    """Those of whom these words are shown that show the ones of its `start`, and no more after them."""
    wanted = _names(" ".join(process.start))
    return (one for one, words in shown.items() if words[-len(wanted) :] == wanted)


def start_mark(process: ProcessSettings) -> Mapping[str, str]:
    """The variable by which a process shows with which settings it was started."""
    return {START_MARK: start_sum(process)}


def start_sum(process: ProcessSettings) -> str:
    """What tells whether two settings would start the same, whatever they are called."""
    how = (process.start, process.cwd, sorted(process.env.items()), process.user)
    more = [one for one in (process.attributes, process.env_file) if one]
    told = repr((*how, *more))
    return f"{zlib.crc32(told.encode()):08x}"


def sum_shown_by(pid: int) -> str:
    """With which settings a process shows that it was started; empty if it shows none."""
    return variable_in(environment(pid), START_MARK)


def begun_otherwise(process: ProcessSettings, pid: int) -> str:
    """That this process was started with other settings than they are now, in words; empty if nothing shows that."""
    shown = sum_shown_by(pid) if process.start else ""
    if shown in ("", start_sum(process)):
        return ""
    words = f"process {pid} was started before its `start`, or what that is given (as `env` or `user`), was changed"
    return f"{words}; what it has is changed at its next start: upulse process restart {process.name}"


def held_words(one: ProcessId, name: str) -> str:
    """That a process is not this one, since it is that one."""
    return f"process {one.pid} is held for {name}"


def without_offspring(
    found: Collection[ProcessId], heads: Collection[ProcessId] | None = None
) -> list[ProcessId]:
    """Those that descend from none of the heads, and are in no session or group that one of them leads.

    heads: by default all of those found; nobody descends from itself.
    """
    heads = found if heads is None else heads
    if len(found) < 2 or not heads:
        return list(found)
    entries, numbers = {one.pid: one for one in live_processes()}, {one.pid for one in heads}

    def has_head(pid: int) -> bool:
        seen, above = entries.get(pid), set[int]()
        if seen and {seen.session, seen.group} & (numbers - {pid}):
            return True
        while seen and seen.parent not in above:
            if seen.parent in numbers:
                return True
            above.add(seen.parent)
            seen = entries.get(seen.parent)
        return False

    return [one for one in found if not has_head(one.pid)]


def _is_produced(process: ProcessSettings, pid: int, is_marked: Callable[[int], bool] | None) -> bool:
    if not process.start:
        return True
    is_own = is_marked is not None and is_marked(pid)
    return is_produced_by(process.start, pid) and (is_own or not _is_elsewhere(process, pid))


def _is_elsewhere(process: ProcessSettings, pid: int) -> bool:
    """Whether it works in another directory than `cwd` says: there the same words may mean another program."""
    if process.cwd is None:
        return False
    cwd = expand_home(process.cwd)
    try:
        with as_its_user(pid):
            if os.readlink(f"/proc/{pid}/cwd") in (cwd, "/"):  # daemons go to /
                return False  # and nobody had to ask its file system, which may not answer
            here = os.stat(f"/proc/{pid}/cwd")
        places = os.stat(cwd), os.stat("/")
    except OSError:
        return False
    return not any(os.path.samestat(here, place) for place in places)


def _names(line: str) -> list[str]:
    return [word.rpartition("/")[2] for word in line.split()]


def _holds(line: Sequence[object], wanted: Sequence[object]) -> bool:
    return any(line[at : at + len(wanted)] == wanted for at in range(len(line) - len(wanted) + 1))


def _pids(found: Sequence[ProcessId]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(str(one.pid) for one in found[:SHOWN]) + more
