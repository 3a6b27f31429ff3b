"""Ends a process with all of its descendants."""

import asyncio
import os
import signal
from collections.abc import Collection
from contextlib import suppress

from pulse_adapters.workers.proc import ProcStat, descendants, has_marker, live_processes, read_stat, send
from pulse_core.model.backoff import Backoff
from pulse_core.ports import ProcessId

_PAUSES = Backoff(0.001, 0.05)
"""Seconds between two looks at what is being ended."""


async def end_tree(root: ProcessId, marker: str = "") -> tuple[ProcessId, ...]:
    """SIGKILL a process, its group, session, descendants and carriers of the marker, until none is left.

    Returns those that this user may not signal. A process in uninterruptible sleep with SIGKILL pending counts
    as ended: it will never run another instruction of its own.
    """
    known: set[ProcessId] = {root}
    beyond: set[ProcessId] = set()
    killed: set[ProcessId] = set()
    rounds, quiet = 0, 0
    while True:
        ended = beyond | _uninterruptible(killed)
        left = [one for one in tree_members(root, known, marker) if one.found not in ended]
        # A process that is just being executed shows no environment: only the second empty search is believed.
        quiet = 0 if left else quiet + 1
        if quiet > (1 if marker else 0):
            return tuple(beyond)
        known.update(one.found for one in left)
        _end_group(root, left)
        beyond.update(one.found for one in left if not send(one.found, signal.SIGKILL))
        killed = known - beyond
        rounds += 1
        await asyncio.sleep(_PAUSES.after(rounds) if left else 0.02)


def _uninterruptible(killed: Collection[ProcessId]) -> set[ProcessId]:
    """The killed processes that are in uninterruptible sleep."""
    return {one for one in killed if (seen := read_stat(one.pid)) and seen.found == one and seen.state == "D"}


def _end_group(root: ProcessId, left: Collection[ProcStat]) -> None:
    """Signal the whole group at once: no member can escape by a fork."""
    if any(one.group == root.pid for one in left):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(root.pid, signal.SIGKILL)


def tree_members(root: ProcessId, known: Collection[ProcessId], marker: str = "") -> list[ProcStat]:
    """The live members of a tree: `known` ones, root's group and session, the marked, and all descendants.

    This process is never one of them, nor is what only descends from it.
    """
    entries = {one.pid: one for one in live_processes()}
    chosen = {one.pid for one in entries.values() if one.found in known}
    chosen |= (
        {one.pid for one in entries.values() if root.pid in (one.group, one.session)}
        if _owned_groups(root, entries)
        else set()
    )
    if marker:
        chosen |= {
            one.pid for one in entries.values() if one.started >= root.started and has_marker(one.pid, marker)
        }
    return [entries[pid] for pid in descendants(chosen, entries)]


def _owned_groups(root: ProcessId, entries: dict[int, ProcStat]) -> bool:
    """Whether groups with root's number are root's: a number in use as a group is never given out again."""
    holder = entries.get(root.pid)
    return root.pid not in (os.getpgrp(), os.getsid(0)) and (holder is None or holder.started == root.started)
