"""Finds processes by their command line or by a marker in their environment, in one pass over /proc."""

import asyncio
import os
import resource
import time
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, pairwise

from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import has_marker, pids, read_proc_file, read_stat
from pulse_core.model.pattern import SearchPattern
from pulse_core.ports import ProcessId

SEARCHED = 4_096
"""How much of a command line is searched, in characters: any user may start one of 2 MiB."""
KEPT = 256
"""Files kept open at most; more would be felt by every fork, which copies the table of descriptors."""
BREATH = 0.001
"""Seconds of searching after which the event loop is given a turn."""
OWN = frozenset({"upulse_cli", "pulse_adapters"})
"""Packages whose modules are programs of Pulse."""

_SLICE = 50  # processes after which the event loop is given a turn in any case: a fraction of a millisecond
_BYTES = 4 * SEARCHED  # no character is longer than four bytes
_KTHREADD, _IS_KERNELS = 2, 0x00200000


class ProcessSearch:
    """Finds processes by a pattern that is searched in their argv, joined by spaces.

    Pulse itself never matches, nor its command line, nor its children.
    """

    def __init__(self) -> None:
        self._lines = CommandLines()

    async def find(
        self, patterns: Mapping[str, SearchPattern], besides: Collection[int] = ()
    ) -> Mapping[str, tuple[ProcessId, ...]]:
        """The live processes that match, by the pattern's name, oldest first; none of the sessions `besides`."""
        matching: dict[str, list[ProcessId]] = {name: [] for name in patterns}
        lines, rested = self._lines.all(), time.perf_counter()
        while some := [(int(pid), raw, joined_argv(raw)) for pid, raw in islice(lines, _SLICE)]:
            whole = b"\n".join(line for _, _, line in some)
            for name, pattern in patterns.items():
                for pid, raw, line in some if pattern.may_find(whole) else ():
                    if pattern.finds(line) and (found := _process_outside_pulse(pid, raw, besides)):
                        matching[name].append(found)
                    if time.perf_counter() - rested > BREATH:
                        await asyncio.sleep(0)
                        rested = time.perf_counter()
            await asyncio.sleep(0)
        return {name: tuple(sorted(some, key=lambda one: one.started)) for name, some in matching.items()}

    def still_matches(self, found: ProcessId, pattern: SearchPattern) -> bool:
        """Whether a live process may still match the pattern; during its exec it has no command line."""
        line = joined_argv(self._lines.of(found.pid))
        return not line or pattern.finds(line)

    def close(self) -> None:
        """Close all files."""
        self._lines.close()


async def find_marked(
    marker: str, variable: str = EFFECT_MARK, leaders: bool = False
) -> tuple[ProcessId, ...]:
    """The live processes that carry this marker (by default a `PULSE_EFFECT`), oldest first.

    leaders: only session leaders, which processes started by Pulse are and their children are not.
    """
    carriers = []
    for count, pid in enumerate(list(pids()), 1):
        seen = read_stat(pid) if pid != os.getpid() and has_marker(pid, marker, variable) else None
        if seen and seen.alive and (seen.session == pid or not leaders):
            carriers.append(seen.found)
        if count % _SLICE == 0:
            await asyncio.sleep(0)
    return tuple(sorted(carriers, key=lambda one: one.started))


class CommandLines:
    """Reads /proc/PID/cmdline, and keeps the files open: four fifths of the time of a read are its open and close.

    Nothing that was read is cached, so nothing can be stale: not after an exec, nor when a process
    changes its title. An open file is one of its process, not of the pid: once that has ended, the
    kernel says so however often the pid is given out again, and the file is opened anew.
    """

    def __init__(self) -> None:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._room = KEPT if allowed == resource.RLIM_INFINITY else min(KEPT, allowed // 4)
        self._files: dict[str, int] = {}
        self._kernels = _file_of_kernel_threads()

    def all(self) -> Iterator[tuple[str, bytes]]:
        """The pid of each process that has a command line, and its searched part, with NUL after each word."""
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
        kernels = self._kernel_threads()
        for gone in self._files.keys() - names:
            self._forget(gone)
        for name in names:
            if name not in kernels and (raw := self._read(name)):
                yield name, raw

    def of(self, pid: int) -> bytes:
        """The command line of one process; empty if it is gone, a zombie, or in its exec."""
        return self._read(str(pid))

    def _kernel_threads(self) -> frozenset[str]:
        """The pids of kernel threads. Read after the listing: a pid that is one by now is no process."""
        listed, chunk = b"", b" "
        while chunk and self._kernels is not None:
            chunk = os.pread(self._kernels, 65536, len(listed))
            listed += chunk
        return frozenset(listed.decode().split())

    def _read(self, name: str) -> bytes:
        file = self._files.get(name)
        if file is None:
            return self._opened(name)
        try:
            return os.pread(file, _BYTES, 0)
        except OSError:  # the process has ended; another one may have its pid
            self._forget(name)
            return self._opened(name)

    def _opened(self, name: str) -> bytes:
        try:
            file = os.open(f"/proc/{name}/cmdline", os.O_RDONLY)
        except OSError:
            return b""
        try:
            raw = os.pread(file, _BYTES, 0)
        except OSError:
            raw = b""
        if raw and len(self._files) < self._room:
            self._files[name] = file
        else:
            os.close(file)
        return raw

    def _forget(self, name: str) -> None:
        os.close(self._files.pop(name))

    def close(self) -> None:
        """Close all files."""
        for name in list(self._files):
            self._forget(name)
        if self._kernels is not None:
            os.close(self._kernels)
            self._kernels = None


def _file_of_kernel_threads() -> int | None:
    """The list of kthreadd's children, or None where it is not visible, as in a container."""
    stat = read_proc_file(f"/proc/{_KTHREADD}/stat")
    if not stat or not int(stat[stat.rindex(b")") + 2 :].split(b" ", 7)[6]) & _IS_KERNELS:
        return None
    try:
        return os.open(f"/proc/{_KTHREADD}/task/{_KTHREADD}/children", os.O_RDONLY)
    except OSError:
        return None  # a kernel without CONFIG_PROC_CHILDREN


def argv_of(raw: bytes) -> list[str]:
    """The argv in a command line as it was read."""
    return os.fsdecode(raw.removesuffix(b"\0")).split("\0")


def joined_argv(raw: bytes) -> bytes:
    """The argv joined by spaces, cut to the searched length."""
    line = raw.removesuffix(b"\0").replace(b"\0", b" ")
    return line if len(line) <= SEARCHED else line.decode("utf-8", "replace")[:SEARCHED].encode()


def _process_outside_pulse(pid: int, raw: bytes, besides: Collection[int]) -> ProcessId | None:
    """The process of this pid, if it is alive, none of Pulse's, and in none of the sessions `besides`."""
    seen = None if _is_ours(pid, raw) else read_stat(pid)
    return seen.found if seen and seen.alive and seen.session not in besides else None


def _is_ours(pid: int, raw: bytes) -> bool:
    """Whether it is Pulse, or runs in a session that a Pulse helper leads, as `journalctl` for the log reader."""
    if pid == os.getpid() or is_pulse(argv_of(raw)):
        return True
    seen = read_stat(pid)
    leader = read_proc_file(f"/proc/{seen.session}/cmdline") if seen and seen.session != pid else None
    return leader is not None and is_pulse(argv_of(leader))


def is_pulse(argv: list[str]) -> bool:
    """Whether this is Pulse's daemon, command line or helper: its arguments name guarded processes."""
    names = [os.path.basename(word) for word in argv[:2]]
    module = next((after for word, after in pairwise(argv) if word == "-m"), "")
    return "upulse" in names or module.split(".")[0] in OWN
