"""Who holds a port in the place of the process that should."""

import asyncio
import os
from collections.abc import Sequence

from pulse_adapters.host.listening_ports import ListeningAddress, holds_socket, listening_inodes
from pulse_adapters.workers.environment import EFFECT_MARK
from pulse_adapters.workers.proc import (
    command_line,
    descendants,
    environment,
    has_marker,
    live_processes,
    pids,
    start_time_of,
)
from pulse_core.model.text import one_line
from pulse_core.ports.host import ProcessId

_SLICE = 20  # processes after which the event loop is given a turn
_COMMAND = 80  # characters of a command line that are told


async def port_holder(where: Sequence[ListeningAddress], found: ProcessId) -> str:
    """Who listens at these addresses, in words, if that is surely neither this process nor one that came out of it.

    Empty if it is one of them, or if nobody listens there whom this user can see.
    """
    inodes = listening_inodes(where)
    if not inodes or holds_socket(found.pid, inodes):
        return ""
    holders = []
    for number, pid in enumerate(list(pids())):
        if holds_socket(pid, inodes):
            holders.append(pid)
        if number % _SLICE == 0:
            await asyncio.sleep(0)
    entries = {one.pid: one for one in live_processes()}
    if not holders or start_time_of(found.pid) != found.started:
        return ""
    own, effect = descendants([found.pid], entries), _effect(found.pid)
    for pid in holders:
        is_led = pid in entries and entries[pid].session == found.pid
        if pid in own or is_led or (effect and has_marker(pid, effect)):
            return ""
    one = where[0]
    address = f"[{one.host}]:{one.port}" if ":" in one.host else f"{one.host}:{one.port}"
    line = one_line(" ".join(command_line(holders[0])))[:_COMMAND]
    return f"{address} is held by process {holders[0]} ({line}), not by {found.pid}"


def _effect(pid: int) -> str:
    """The `PULSE_EFFECT` that a process was started with; what carries the same one came out of the same start."""
    _, mark, rest = environment(pid).partition(f"\0{EFFECT_MARK}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if mark else ""
