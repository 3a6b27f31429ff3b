"""One pass over /proc for all processes that have to be searched by their command line."""

import asyncio
import os
import re
from collections.abc import Collection, Mapping
from itertools import pairwise

from pulse_adapters.host.proc import MARKER, Entry, carries, command_line, entry, pids
from pulse_core.ports import Found

SEARCHED = 4_096
"""How much of a command line is searched: any user may start one of 2 MiB, and patterns may be slow on it."""

_SLICE = 50  # processes between two breaths of the event loop: about a millisecond


async def search(
    patterns: Mapping[str, str], besides: Collection[int] = ()
) -> Mapping[str, tuple[Found, ...]]:
    """For each name the live processes whose argv, joined by spaces, its pattern is found in; oldest first.

    Pulse itself never matches, nor its command line, nor what runs in one of the sessions `besides`.
    """
    shapes = {name: re.compile(pattern) for name, pattern in patterns.items()}
    found: dict[str, list[Found]] = {name: [] for name in patterns}
    for count, pid in enumerate(list(pids()), 1):
        line = " ".join(argv := command_line(pid))[:SEARCHED]
        # Patterns first: a second look at each process would cost as much as this one.
        hits = [name for name, shape in shapes.items() if shape.search(line)] if line else []
        if hits and (seen := _eligible(pid, argv, besides)):
            for name in hits:
                found[name].append(seen.found)
        if count % _SLICE == 0:
            await asyncio.sleep(0)
    return {name: tuple(sorted(some, key=lambda one: one.started)) for name, some in found.items()}


def _eligible(pid: int, argv: list[str], besides: Collection[int]) -> Entry | None:
    if pid == os.getpid() or is_pulse(argv):
        return None
    seen = entry(pid)
    return seen if seen and seen.alive and seen.session not in besides else None


def is_pulse(argv: list[str]) -> bool:
    """Whether this is Pulse's daemon or command line: it names what it guards without being it."""
    names = [os.path.basename(word) for word in argv[:2]]
    module = next((after for word, after in pairwise(argv) if word == "-m"), "")
    return "upulse" in names or module.split(".")[0] == "upulse_cli"


def still_matches(found: Found, pattern: str) -> bool:
    """Whether a live process still has a command line with this in it; while it is executed, it has none."""
    argv = command_line(found.pid)
    return not argv or re.search(pattern, " ".join(argv)[:SEARCHED]) is not None


async def marked(marker: str, variable: str = MARKER, leaders: bool = False) -> tuple[Found, ...]:
    """The live processes that carry this marker (by default a `PULSE_EFFECT`), oldest first.

    leaders: only those that lead a session, as what Pulse starts does and what that starts does not.
    """
    carriers = []
    for count, pid in enumerate(list(pids()), 1):
        seen = entry(pid) if pid != os.getpid() and carries(pid, marker, variable) else None
        if seen and seen.alive and (seen.session == pid or not leaders):
            carriers.append(seen.found)
        if count % _SLICE == 0:
            await asyncio.sleep(0)
    return tuple(sorted(carriers, key=lambda one: one.started))
