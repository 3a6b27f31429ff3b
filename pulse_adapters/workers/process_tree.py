"""Ends processes with all that came out of them. Blocks: the daemon calls it in a thread."""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from pulse_adapters.workers.environment import HANDS_MARK

PATIENCE = 2.0
"""Seconds after which what is not dead is left: it sleeps uninterruptibly, or belongs to somebody else."""
_PAUSE = 0.005
_MARKED = f"{HANDS_MARK}=".encode()


class Entry(NamedTuple):
    """A process as `/proc` tells it. started: clock ticks after boot, so that a number given out again is known."""

    pid: int
    parent: int
    session: int
    started: int


Table = Mapping[int, Entry]
Chosen = Callable[[Table], Iterable[int]]


def table() -> Table:
    """All processes that are alive."""
    entries = (_entry(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {one.pid: one for one in entries if one}


def end(chosen: Chosen, patience: float = PATIENCE) -> bool:
    """Kill what is chosen, its descendants, and what those begin meanwhile; whether nothing is left."""
    until = time.monotonic() + patience
    known: set[Entry] = set()
    quiet = 0
    while quiet < 2:  # what is just being executed shows no mark: only the second empty search is believed
        left = _left(chosen, known)
        known |= left
        for one in left:
            _kill(one)
        quiet = 0 if left else quiet + 1
        if left and time.monotonic() > until:
            return False
        if quiet < 2:
            time.sleep(_PAUSE)
    return True


def in_session(session: int) -> Chosen:
    """Those in a session."""
    return lambda now: [one.pid for one in now.values() if one.session == session]


def marked(mark: str) -> Chosen:
    """Those that carry a mark in their environment, `NAME=VALUE`."""
    words = mark.encode()
    return lambda now: [pid for pid in now if _carries(pid, words)]


def whole(session: int, mark: str) -> Chosen:
    """Those in a session, and those with a mark, which may have left the session."""
    staying, bearing = in_session(session), marked(mark)
    return lambda now: [*staying(now), *bearing(now)]


def strays(uid: int) -> Chosen:
    """Those of a user that nobody answers for: their parents are gone, and they have thrown their mark away.

    What bears any mark may be a service of another revision, or of another home. Where the first process of the machine
    (a container's) is of our kind, orphans can't be told from its children, and go with it.
    """

    def chosen(now: Table) -> Iterable[int]:
        theirs = {pid for pid in now if _uid(pid) == uid} if not _is_ours(1) else set()
        return [pid for pid in theirs if _answers(pid, theirs, now) == 1 and not _carries(pid, _MARKED)]

    return chosen


def both(one: Chosen, other: Chosen) -> Chosen:
    """What either of them chooses."""
    return lambda now: [*one(now), *other(now)]


def _answers(pid: int, theirs: Collection[int], now: Table) -> int:
    """The next process above that is not one of theirs."""
    while pid in theirs:
        pid = now[pid].parent
    return pid


def _left(chosen: Chosen, known: set[Entry]) -> set[Entry]:
    now = table()
    found = {pid for pid in chosen(now) if pid in now} | {one.pid for one in known if now.get(one.pid) == one}
    children: dict[int, list[int]] = {}
    for one in now.values():
        children.setdefault(one.parent, []).append(one.pid)
    ahead = list(found)
    while ahead:
        born = [pid for pid in children.get(ahead.pop(), ()) if pid not in found]
        found.update(born)
        ahead += born
    return {now[pid] for pid in found if pid != os.getpid()}


def _kill(one: Entry) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(one.pid)
        try:
            if (still := _entry(one.pid)) and still.started == one.started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _entry(pid: int) -> Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as told:
            words = told.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    if len(words) < 20 or words[0] in (b"Z", b"X"):
        return None
    return Entry(pid, int(words[1]), int(words[3]), int(words[19]))


def _carries(pid: int, words: bytes) -> bool:
    """Whether it has this in its environment: `NAME=VALUE`, or `NAME=` for any value."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as told:
            known = told.read().split(b"\0")
    except OSError:
        return False
    return words in known or (words.endswith(b"=") and any(one.startswith(words) for one in known))


def _uid(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/status", "rb") as told:
            return next((int(line.split()[1]) for line in told if line.startswith(b"Uid:")), None)
    except OSError:
        return None


def _is_ours(pid: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", "/proc/self/exe")
    except OSError:
        return False
