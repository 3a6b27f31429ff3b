"""Reads what a process keeps in its own memory, its arguments and environment, and waits for none that keeps that locked.

For /proc/PID/environ and cmdline the kernel takes the lock of that process's memory, and any process can keep its own one
busy: whoever reads sleeps meanwhile, in a state that no signal interrupts. So a thread reads, and who asks looks at what
that thread does: if the kernel has put it to sleep, the process is `HANGING`, and the thread is left to it, with all of
the same user that it has still to read. What it reads in the end is the answer to a later question. That is so for a
moment, too, while a process executes another program. While nothing hangs, a question costs a tenth of a millisecond.
"""

import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue

from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.process_access import as_its_user
from pulse_adapters.workers.threads import start_thread

LOOK_S, LOOKS = 0.001, 3
"""Seconds after which it is looked whether the reading thread sleeps, and how often in a row it does who hangs."""
MOST_S = 0.05
"""Seconds of waiting for a thread that does not sleep, and is only not given a processor."""
SLOW_S = 0.1
"""Seconds for which a process keeps what it shows locked while it executes another program, at most."""
REMEMBERED_S = 10.0
"""Seconds for which it is remembered that a process of a user has hung for longer."""
MOST_THREADS = 4
"""Threads that are left to processes of one user; then no further one is begun for it."""
MOST_USERS = 4
"""Users whose processes hang; then nobody waits for those of any other user but the own one."""
MOST = 1 << 22
"""Bytes of arguments or of an environment."""
_ONE_THREAD = 3
"""Links of the folder of a process's threads, where it has one."""
MOST_KEPT, MOST_KEPT_BYTES = 1_000, 16 * MOST
"""Processes of one user whose answers are kept until they are asked for, and what these may take: some never are."""


class Hanging:
    """In the place of what a process keeps to itself."""


HANGING = Hanging()
Told = bytes | Hanging
_Key = tuple[str, int]


@dataclass(eq=False)
class _Batch:
    """What a thread reads next: this file of these processes; done: how many of them were read; rest: what it is left to."""

    name: str
    pids: Sequence[int]
    most: int
    found: dict[int, bytes] = field(default_factory=dict)
    done: int = 0
    rest: Sequence[int] | None = None


class _User:
    """One of whom processes hang: what threads were left to and wait to be read by them, and what was read there.

    threads: since when each sleeps; slow: when a process was slow last; since: since when that has happened now and then.
    """

    def __init__(self) -> None:
        self.threads: dict[_Batch, float] = {}
        self.waiting: set[_Key] = set()
        self.told: dict[_Key, tuple[int | None, bytes]] = {}
        self.slow, self.since = float("-inf"), 0.0

    def look(self, now: float) -> None:
        """Note whether something hangs for long."""
        if now - min(self.threads.values(), default=now) > SLOW_S:
            self.since, self.slow = self.since if self.is_slow(now) else now, now

    def is_slow(self, now: float) -> bool:
        """Whether something was slow of late."""
        return now - self.slow < REMEMBERED_S


class ProcessMemory:
    """Asks for a file of /proc/PID, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_ReaderThread] = []
        self._users: dict[int, _User] = {}

    def read(self, name: str, pid: int, most: int = MOST) -> Told:
        """The first bytes of this file; nothing if the process is gone, shows none, or may not be read."""
        return self.read_all(name, (pid,), most)[pid]

    def read_all(self, name: str, pids: Collection[int], most: int = MOST) -> Mapping[int, Told]:
        """The same of many."""
        told: dict[int, Told] = {}
        groups: dict[_User | None, list[int]] = {None: list(pids)}
        if self._users:
            groups = {None: []}
            for pid in pids:
                user = self._user_of(pid)
                if (known := self._told(user, name, pid) if user else None) is None:
                    groups.setdefault(user, []).append(pid)
                else:
                    told[pid] = known
        for ahead in groups.values():
            while ahead:
                batch = _Batch(name, ahead, most)
                is_whole = self._finish(batch)
                told |= batch.found
                rest = [] if is_whole else [pid for pid in ahead if pid not in batch.found]
                hanging = set(batch.rest or rest)
                told |= dict.fromkeys(hanging, HANGING)
                ahead = [pid for pid in rest if pid not in hanging]
        return told

    def is_slow(self, uid: int, since_s: float = float("inf")) -> bool:
        """Whether processes of this user hang; since_s: and have done so for no longer."""
        now = time.monotonic()
        user = self._users.get(uid)
        return user is not None and user.is_slow(now) and now - user.since < since_s

    def _finish(self, batch: _Batch) -> bool:
        """Have a thread read it; whether it was read whole, and no process hung."""
        now, user = time.monotonic(), self._user_of(batch.pids[0]) if self._users else None
        if user and len(user.threads) >= MOST_THREADS:
            return False
        with self._lock:
            reader = self._idle.pop() if self._idle else None
        seen, slept = 0, 0
        try:
            reader = reader or _ReaderThread(self)
        except BlockingIOError:  # as if they hang: nobody knows what they show
            return False
        reader.ahead.put(batch)
        looks, until = 1 if user and user.is_slow(now) else LOOKS, now + MOST_S
        while True:
            with suppress(Empty):
                reader.over.get(timeout=LOOK_S)
                with self._lock:
                    self._idle.append(reader)
                return True
            slept = (slept + 1 if batch.done == seen else 1) if reader.sleeps() else 0
            seen = batch.done
            if (slept >= looks or time.monotonic() > until) and self._leave(batch):
                return False

    def _leave(self, batch: _Batch) -> bool:
        """Leave its thread to the process that it reads just now, and to others of that user; False if all were read."""
        uids = {pid: _user(pid) for pid in batch.pids[batch.done :]}
        with self._lock:
            if batch.done == len(batch.pids):
                return False
            uid = uids[batch.pids[batch.done]]
            batch.rest = [pid for pid in batch.pids[batch.done :] if uids[pid] == uid]
            user = self._users.setdefault(uid, _User())
            user.threads[batch] = time.monotonic()
            user.waiting.update((batch.name, pid) for pid in batch.rest)
            return True

    def take(self, batch: _Batch, pid: int, raw: bytes) -> Sequence[int] | None:
        """Take what a thread has read; what it is left to by now, if it was left."""
        with self._lock:
            if batch.rest is None:
                batch.found[pid] = raw
                batch.done += 1
                return None
        self.keep(batch, pid, raw)
        return batch.rest[1:]

    def keep(self, batch: _Batch, pid: int, raw: bytes) -> None:
        """Keep what was read by a thread that was left, until it is asked for."""
        started, now = _started(pid), time.monotonic()
        with self._lock:
            user = next((one for one in self._users.values() if batch in one.threads), _User())
            user.look(now)
            user.threads[batch] = now
            user.waiting.discard((batch.name, pid))
            user.told[batch.name, pid] = started, raw
            while (
                len(user.told) > MOST_KEPT or sum(len(one) for _, one in user.told.values()) > MOST_KEPT_BYTES
            ):
                del user.told[next(iter(user.told))]

    def end(self, batch: _Batch) -> None:
        """Take note that a thread that was left has read all."""
        with self._lock:
            for user in self._users.values():
                user.threads.pop(batch, None)

    def _user_of(self, pid: int) -> _User | None:
        uid, now = _user(pid), time.monotonic()
        with self._lock:
            user = self._users.get(uid)
            if user:
                user.look(now)
                if not (user.threads or user.told or user.is_slow(now)):
                    del self._users[uid]
                    return None
            # None of whom nothing hangs any more: others would be taken for slow after them, and others after those.
            elif sum(bool(one.threads) for one in self._users.values()) >= MOST_USERS and uid != os.geteuid():
                user = self._users[uid] = _User()
                user.slow = user.since = now
            return user

    def _told(self, user: _User, name: str, pid: int) -> Told | None:
        """What was read since it was asked for, or that it still hangs; None if it was not asked for."""
        with self._lock:
            if (name, pid) in user.waiting:
                return HANGING
            started, told = user.told.pop((name, pid), (None, b""))
        return told if started is not None and started == _started(pid) else None


class _ReaderThread:
    """A thread that reads one batch after the other, until one is left to it."""

    def __init__(self, memory: ProcessMemory) -> None:
        self.ahead, self.over = SimpleQueue[_Batch](), SimpleQueue[None]()
        self._memory, self._number = memory, 0
        start_thread(self._run, "processes")

    def _run(self) -> None:
        self._number = threading.get_native_id()
        while True:
            batch = self.ahead.get()
            for pid in batch.pids:
                rest = self._memory.take(batch, pid, _read_shown(batch.name, pid, batch.most))
                if rest is not None:
                    for other in rest:
                        self._memory.keep(batch, other, _read_shown(batch.name, other, batch.most))
                    self._memory.end(batch)
                    return
            self.over.put(None)

    def sleeps(self) -> bool:
        """Whether the kernel has put it to sleep, so that no signal wakes it."""
        raw = _read("stat", f"self/task/{self._number}", 4096) if self._number else b""
        return raw[raw.rfind(b")") + 2 :].startswith(b"D")


def _read_shown(name: str, pid: int, most: int) -> bytes:
    if raw := _read(name, pid, most):
        return raw
    other = other_thread(pid)
    return _read(name, other, most) if other else b""


def other_thread(pid: int) -> str:
    """Another thread of a process than its first one, as `PID/task/TID`; empty if there is none.

    Where the first one has ended, the kernel shows nothing of it but `stat` and `status`: it has let go of memory and files.
    """
    others = list[str]()
    with suppress(OSError):  # it is gone
        if os.stat(f"/proc/{pid}/task").st_nlink > _ONE_THREAD:
            others = SPARE.read(partial(os.listdir, f"/proc/{pid}/task"))
    return next((f"{pid}/task/{one}" for one in others if one != str(pid)), "")


def _read(name: str, pid: int | str, most: int) -> bytes:
    try:
        with (
            as_its_user(pid) if name == "environ" else nullcontext()
        ):  # who can't be read would look as if it showed none
            file = SPARE.read(partial(os.open, f"/proc/{pid}/{name}", os.O_RDONLY))
    except OSError:
        return b""
    try:
        return b"".join(_chunks(file, most))
    except OSError:
        return b""  # the process ended between open and read
    finally:
        os.close(file)
        SPARE.regain()


def _chunks(file: int, most: int) -> Iterator[bytes]:
    while most > 0 and (chunk := os.read(file, min(most, 65536))):
        yield chunk
        most -= len(chunk)
        if len(chunk) < 4096:
            return


def _started(pid: int) -> int | None:
    raw = _read("stat", pid, 4096)
    return int(raw[raw.rindex(b")") + 2 :].split(b" ", 20)[19]) if raw else None


def _user(pid: int) -> int:
    """Whose process it is: its directory shows that whatever the process does; -1 if it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


MEMORY = ProcessMemory()


def _forget() -> None:
    """In a forked child there is none of the threads."""
    MEMORY.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget)
