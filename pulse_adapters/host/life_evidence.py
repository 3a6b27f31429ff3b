"""What shows that a process came out of a start of this home, though the log may know nothing of that start.

A mark in its environment alone shows nothing: anybody can set one, or hand on what was inherited. A control group of the
home's own shows it, since only Pulse puts processes there. Without one, a session does that nobody but bearers of the same
start has opened, of this user, and in which the path of the home leads to this very home (and not to a container's).
"""

import os
from collections.abc import Collection
from pathlib import Path

from pulse_adapters.host.marked_processes import Bearer
from pulse_adapters.workers.control_group import LIFE
from pulse_adapters.workers.proc import own_line, read_proc_file, read_stat, uid_of
from pulse_core.ports.host import ProcessId


def is_of_home(one: Bearer, bearers: Collection[Bearer], home: Path, is_grouped: bool) -> bool:
    """Whether this came out of a start of the home, and may be ended.

    bearers: all that are known, itself among them; is_grouped: whether it is in the group of its life.
    """
    pid = one.found.pid
    if pid in own_line():
        return False
    if is_grouped:
        return True
    try:
        if uid_of(pid) != os.getuid() or not os.path.samefile(f"/proc/{pid}/root{home}", home):
            return False
    except OSError:
        return False  # it is gone, or the home is
    return _has_own_session(pid, {other.found.pid for other in bearers if other.effect == one.effect})


def effects_in_groups(pid: int, folders: Collection[str]) -> Collection[str]:
    """The effects that began the lives in whose control groups, in a folder of such a name, the process is."""
    raw = read_proc_file(f"/proc/{pid}/cgroup") if folders else None
    lines = [f"{os.fsdecode(line)}/" for line in (raw or b"").splitlines()]
    beginnings = [f"/{folder}/{LIFE}" for folder in folders]
    return {
        rest.partition("/")[0]
        for line in lines
        for beginning in beginnings
        for rest in line.split(beginning)[1:]
    }


def is_led_by(pid: int, main: ProcessId) -> bool:
    """Whether the process is in the session or group that this one has led, if its number is not another one's by now."""
    seen, leader = read_stat(pid), read_stat(main.pid)
    return (
        seen is not None
        and main.pid in (seen.session, seen.group)
        and seen.started >= main.started
        and (leader is None or leader.found == main)
    )


def _has_own_session(pid: int, members: Collection[int]) -> bool:
    """Whether its session was opened by one of these members, and all that is above it in there is a member, too."""
    seen = read_stat(pid)
    while seen and seen.session and seen.pid != seen.session:
        above = read_stat(seen.parent)
        if above is None or above.session != seen.session:  # it is an orphan
            return seen.session in members or _is_gone(seen.session)
        if above.pid not in members:
            return False
        seen = above
    return seen is not None and seen.session in members


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; also of one that this user may not see."""
    try:
        os.getsid(pid)
    except ProcessLookupError:
        return True
    seen = read_stat(pid)
    return seen is not None and not seen.alive
