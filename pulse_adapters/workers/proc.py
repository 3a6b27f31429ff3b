"""Raw reads of /proc: about ten microseconds a process, and a process that is gone is None, not an error.

What a process may keep locked, its command line and environment, is read by `process_memory`.
"""

import os
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple

from pulse_adapters.workers.boot_clock import NANOSECONDS, OFFSET_NS, boot_ns
from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.process_memory import MEMORY, MOST, Hanging
from pulse_core.model.errors import PulseError
from pulse_core.model.shortages import SHORTAGES
from pulse_core.model.text import one_line
from pulse_core.ports.host import ProcessId

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
OFFSET_TICKS = OFFSET_NS * TICKS_PER_SECOND // NANOSECONDS
"""What start times in /proc have too much in this time namespace."""

_NAME = 80  # characters of a program's name that are told
_TITLE = 4_096
"""Bytes of a command line in which that is looked for: any process may have one of mebibytes."""
# PF_KTHREAD, PF_FORKNOEXEC and PF_EXITING of include/linux/sched.h
_KERNEL_THREAD, _FORKED_ONLY, _EXITING = 0x00200000, 0x00000040, 0x00000004


class ProcStat(NamedTuple):
    """One line of /proc/PID/stat, the fields that Pulse uses; `started` is in clock ticks after boot."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    flags: int
    threads: int
    started: int

    @property
    def of_kernel(self) -> bool:
        """Whether it is one of the kernel's threads; not only those are in session 0: who entered a namespace is, too."""
        return bool(self.flags & _KERNEL_THREAD)

    @property
    def has_executed(self) -> bool:
        """Whether it executes a program of its own; else it was forked by who shows the same command line."""
        return not self.flags & _FORKED_ONLY

    @property
    def is_led_by_dead(self) -> bool:
        """Whether its first thread has ended, or is about to, and others may go on."""
        return bool(self.flags & _EXITING) and self.threads > 1

    @property
    def alive(self) -> bool:
        """Whether it still runs; a zombie does not, unless only its first thread has ended."""
        return self.state not in "ZXx" or (self.state == "Z" and self.threads > 1)

    @property
    def found(self) -> ProcessId:
        """Its identity."""
        return ProcessId(self.pid, self.started)


def read_proc_file(path: str) -> bytes | None:
    """A whole /proc file, or None if it is gone or not ours to read. Raises OSError if this process lacks what it takes."""
    try:
        return SPARE.read(lambda: _whole(path))
    except OSError as error:
        if error.errno in SHORTAGES:
            raise
        return None


def _whole(path: str) -> bytes | None:
    file = os.open(path, os.O_RDONLY)
    try:
        whole = b""
        # A file of many rows, as /proc/net/tcp, is read a page of whole rows at a time, whatever room there is.
        while chunk := os.read(file, 65536):
            whole += chunk
        return whole
    finally:
        os.close(file)


def refuse_foreign_numbers() -> None:
    """Raise PulseError if /proc shows another PID namespace: there the number of each child is that of somebody else."""
    try:
        shown = int(os.readlink("/proc/self"))
    except OSError as error:
        raise PulseError(f"/proc is not to be read ({error.strerror}): mount -t proc proc /proc") from error
    if shown != (own := os.getpid()):
        raise PulseError(
            f"/proc shows the processes of another PID namespace, in which this is process {shown}, and not {own}:"
            " mount that of its own, mount -t proc proc /proc"
        )


def read_stat(pid: int) -> ProcStat | None:
    """What the kernel says of one process, zombies included."""
    raw = read_proc_file(f"/proc/{pid}/stat")
    if not raw:
        return None
    # The name in parentheses may hold anything, even ") R 1 ": the last parenthesis ends it.
    field = raw[raw.rindex(b")") + 2 :].split(b" ", 20)
    parent, group, session, flags, threads, started = (int(field[number]) for number in (1, 2, 3, 6, 17, 19))
    return ProcStat(pid, field[0].decode(), parent, group, session, flags, threads, started - OFFSET_TICKS)


def has_no_environment(pid: int) -> bool | None:
    """Whether the kernel has laid out an empty one; None of who is just being executed, False where that is not shown."""
    raw = read_proc_file(f"/proc/{pid}/stat") or b""
    field = raw[raw.rfind(b")") + 2 :].split()
    if len(field) < 49:
        return False
    end_of_code, begin, end = field[24], field[47], field[48]
    # The end of the code is written down after the environment; of a process that is not ours to read it is 1.
    return None if end_of_code == b"0" else begin == end != b"0"


def start_time_of(pid: int) -> int | None:
    """The start time of a live process in clock ticks after boot; None if it is dead or a zombie."""
    seen = read_stat(pid)
    return seen.started if seen and seen.alive else None


def session_of(pid: int) -> int | None:
    """The session that a process is in; None if it is gone."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def has_group(number: int) -> bool:
    """Whether anybody, zombies included, is in the process group of this number."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ticks_now() -> int:
    """The clock by which start times are told: ticks after boot."""
    return boot_ns() * TICKS_PER_SECOND // NANOSECONDS


def own_line() -> frozenset[int]:
    """This process and all those that it came out of: whoever ends one of them with its tree ends this one, too."""
    line, pid = {0, 1}, os.getpid()
    while pid not in line:
        line.add(pid)
        pid = seen.parent if (seen := read_stat(pid)) else 1
    return frozenset(line)


def is_alive(found: ProcessId) -> bool:
    """Whether this very process still runs, not another one that was given its pid."""
    return start_time_of(found.pid) == found.started


def command_line(pid: int) -> list[str]:
    """The argv of a process; empty for kernel threads, zombies and what is gone."""
    raw = arguments(pid)
    return os.fsdecode(raw.removesuffix(b"\0")).split("\0") if raw else []


def arguments(pid: int, most: int = MOST) -> bytes:
    """The first bytes of a command line; empty if the process is gone, a zombie, in its exec, the kernel's, or hangs."""
    told = MEMORY.read("cmdline", pid, most)
    return b"" if isinstance(told, Hanging) else told


def program_name(pid: int) -> str:
    """The name of a process's program, for people: never its arguments, which may be secrets; empty if it is gone.

    A process may give itself a title, as `nginx: worker process`: then the first word of that.
    """
    words = os.fsdecode(arguments(pid, _TITLE).partition(b"\0")[0]).split()
    name = os.path.basename(words[0].removesuffix(":")) if words else ""
    if not name and (raw := read_proc_file(f"/proc/{pid}/comm")):
        name = os.fsdecode(raw)
    return one_line(name.strip())[:_NAME]


def described(pid: int) -> str:
    """A process that is not ours in words that may be told to anybody and kept: its pid and its program."""
    name = program_name(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def uid_of(pid: int) -> int | None:
    """The real user of a process; None if it is gone."""
    return _status_number(pid, b"Uid:")


def process_of(thread: int) -> int | None:
    """The process that a thread is of, which its first one has the number of; None if it is gone."""
    return _status_number(thread, b"Tgid:")


def _status_number(pid: int, field: bytes) -> int | None:
    for line in (read_proc_file(f"/proc/{pid}/status") or b"").splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    return None


def is_of_user(pid: int, uid: int) -> bool:
    """Whether a process may act as this user: also by the saved or effective one of a setuid program."""
    lines = (read_proc_file(f"/proc/{pid}/status") or b"").splitlines()
    return any(str(uid).encode() in line.split()[1:] for line in lines if line.startswith(b"Uid:"))


def has_marker(pid: int, marker: str, variable: str = EFFECT_MARK) -> bool:
    """Whether a process was started with this marker (by default a `PULSE_EFFECT`) in its environment."""
    return bool(with_marker((pid,), marker, variable))


def with_marker(pids: Collection[int], marker: str, variable: str = EFFECT_MARK) -> list[int]:
    """Those of these processes that were started with this marker."""
    wanted = f"\0{variable}={marker}\0".encode()
    return [pid for pid, raw in environments(pids) if raw and wanted in raw]


def environment(pid: int, most: int = MOST) -> bytes:
    """What a process was started with: `NAME=VALUE` between NULs; nothing if it is gone, hangs, or is not ours to read."""
    raw = MEMORY.read("environ", pid, most)
    return b"" if isinstance(raw, Hanging) else _between_nuls(raw)


def environments(pids: Collection[int]) -> Iterator[tuple[int, bytes | None]]:
    """The same of many; None of those that hang."""
    for pid, raw in MEMORY.read_all("environ", pids).items():
        yield pid, None if isinstance(raw, Hanging) else _between_nuls(raw)


def is_slow_to_show(pid: int) -> bool:
    """Whether processes of its user keep their environments to themselves for long, or have done so of late."""
    with suppress(OSError):
        return MEMORY.is_slow(os.stat(f"/proc/{pid}").st_uid)
    return False


def _between_nuls(raw: bytes) -> bytes:
    return b"\0" + raw + b"\0" if raw else b""


def pids() -> Iterator[int]:
    """The ids of all processes there are, zombies included."""
    return (int(name) for name in SPARE.read(lambda: os.listdir("/proc")) if name.isdecimal())


def live_processes() -> list[ProcStat]:
    """All live processes but this one."""
    own = os.getpid()
    return [seen for pid in pids() if pid != own and (seen := read_stat(pid)) and seen.alive]


def children(pid: int) -> set[int]:
    """The pids of a live process's children; none where the kernel doesn't keep them (CONFIG_PROC_CHILDREN)."""
    try:
        threads = SPARE.read(lambda: os.listdir(f"/proc/{pid}/task"))
    except OSError as error:
        if error.errno in SHORTAGES:
            raise
        return set()
    told = (read_proc_file(f"/proc/{pid}/task/{thread}/children") or b"" for thread in threads)
    return {int(child) for words in told for child in words.split()}


def descendants(roots: Iterable[int], entries: Mapping[int, ProcStat]) -> set[int]:
    """These and everything that came out of them."""
    children: dict[int, list[int]] = {}
    for one in entries.values():
        children.setdefault(one.parent, []).append(one.pid)
    ahead = list(roots)
    whole = set(ahead)
    while ahead:
        born = [pid for pid in children.get(ahead.pop(), ()) if pid not in whole]
        whole.update(born)
        ahead.extend(born)
    return whole


def open_pidfd(found: ProcessId) -> int | None:
    """A pidfd of exactly this process, or None if it is gone. Raises OSError.

    Its start time is compared after the open, when its pid can't be reused any more.
    """
    try:
        handle = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return None
    with ExitStack() as opened:
        opened.callback(os.close, handle)
        if not is_alive(found):  # raises where nobody can look
            return None
        opened.pop_all()
    return handle


def send(found: ProcessId, number: signal.Signals) -> bool:
    """Signal this very process, never one that has got its pid since; False if we may not."""
    if (handle := open_pidfd(found)) is None:
        return True
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(handle)
    return True
