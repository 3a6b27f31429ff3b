"""Finds processes by their command line, in one pass over /proc."""

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from itertools import pairwise

from pulse_adapters.host.marked_processes import PAUSES_S, SETTLED
from pulse_adapters.workers.environment import HANDS_MARK
from pulse_adapters.workers.proc import (
    arguments,
    environment,
    is_slow_to_show,
    pids,
    read_stat,
    ticks_now,
)
from pulse_adapters.workers.process_memory import MEMORY, Hanging
from pulse_core.model.pattern import SearchPattern
from pulse_core.ports.host import ProcessId

SEARCHED = 4_096
"""How much of a command line is searched, in characters: any user may start one of 2 MiB."""
BREATH = 0.001
"""Seconds of searching after which the event loop is given a turn."""
OWN = frozenset({"upulse_cli", "pulse_adapters"})
"""Packages whose modules are programs of Pulse."""

_SLICE = 50  # processes after which the event loop is given a turn in any case: a fraction of a millisecond
_EXEC_S = 0.01
_HANGING_S = 0.01
"""Up to which pause a process is asked for again whose user's hang: many are only read in the background by then."""
_BYTES = 4 * SEARCHED  # no character is longer than four bytes


async def find_matching(
    patterns: Mapping[str, SearchPattern], besides: Collection[int] = ()
) -> Mapping[str, tuple[ProcessId, ...]]:
    """The live processes whose argv, joined by spaces, match, by the pattern's name, oldest first.

    Who is just being executed shows no command line, or keeps it locked: it is looked at again, a quarter of a second long.
    Of a user whose processes hang for long, some may be missing.
    Pulse itself never matches, nor its command line, nor its children, nor what is in one of the sessions `besides`.
    """
    matching: dict[str, list[ProcessId]] = {name: [] for name in patterns}
    ahead, rested = list(pids()), time.perf_counter()
    for pause in (*PAUSES_S, 0.0):
        blank, hanging = list[int](), list[int]()
        for at in range(0, len(ahead), _SLICE):
            lines = MEMORY.read_all("cmdline", ahead[at : at + _SLICE], _BYTES)
            hanging += [pid for pid, raw in lines.items() if isinstance(raw, Hanging)]
            some = [(pid, raw) for pid, raw in lines.items() if not isinstance(raw, Hanging)]
            blank += [pid for pid, raw in some if not raw]
            told = [(pid, raw, joined_argv(raw)) for pid, raw in some if raw]
            whole = b"\n".join(line for _, _, line in told)
            for name, pattern in patterns.items():
                for pid, raw, line in told if pattern.may_find(whole) else ():
                    if pattern.finds(line) and (found := outside_pulse(pid, raw, besides)):
                        matching[name].append(found)
                    if time.perf_counter() - rested > BREATH:
                        await asyncio.sleep(0)
                        rested = time.perf_counter()
            await asyncio.sleep(0)
        slow = [pid for pid in hanging if is_slow_to_show(pid)]
        # Who is just being executed, and is given no processor, keeps its line locked.
        ahead = [pid for pid in (*blank, *hanging) if pid not in slow and may_be_in_exec(pid, pause)]
        if not (ahead := [*ahead, *(slow if pause < _HANGING_S else ())]):
            break
        await asyncio.sleep(pause)
    return {name: tuple(sorted(some, key=lambda one: one.started)) for name, some in matching.items()}


def may_be_in_exec(pid: int, pause: float) -> bool:
    """Whether one that shows no command line may show one after this pause: it is alive and none of the kernel's threads.

    Who is old may have emptied its line; it is given one of the shorter pauses, for an exec of late.
    """
    if not (seen := read_stat(pid)) or not seen.alive or seen.of_kernel:
        return False
    return pause < _EXEC_S or ticks_now() - seen.started <= SETTLED


def command_line_of(pid: int) -> bytes:
    """The searched part of a command line; empty if the process is gone, a zombie, in its exec, the kernel's, or hangs."""
    return arguments(pid, _BYTES)


def argv_of(raw: bytes) -> list[str]:
    """The argv in a command line as it was read."""
    return os.fsdecode(raw.removesuffix(b"\0")).split("\0")


def joined_argv(raw: bytes) -> bytes:
    """The argv joined by spaces, cut to the searched length."""
    line = raw.removesuffix(b"\0").replace(b"\0", b" ")
    return line if len(line) <= SEARCHED else line.decode("utf-8", "replace")[:SEARCHED].encode()


def outside_pulse(pid: int, raw: bytes, besides: Collection[int] = ()) -> ProcessId | None:
    """The process of this pid, if it is alive, none of Pulse's, and in none of the sessions `besides`.

    What runs in a session that a Pulse helper leads is Pulse's, as `journalctl` for the log reader; and what carries the
    mark of an action host is the engine's.
    """
    if pid == os.getpid() or is_pulse(argv_of(raw)) or f"\0{HANDS_MARK}=".encode() in environment(pid):
        return None
    if not (seen := read_stat(pid)) or not seen.alive or seen.session in besides:
        return None
    leader = command_line_of(seen.session) if seen.session != pid else None
    return None if leader and is_pulse(argv_of(leader)) else seen.found


def is_pulse(argv: list[str]) -> bool:
    """Whether this is Pulse's daemon, command line or helper: its arguments name guarded processes."""
    names = [os.path.basename(word) for word in argv[:2]]
    module = next((after for word, after in pairwise(argv) if word == "-m"), "")
    return "upulse" in names or module.split(".")[0] in OWN
