"""The daemon's own priority: where it may, it waits for a processor behind nobody whom it keeps alive."""

import os
from contextlib import suppress
from pathlib import Path

NICENESS = -10
"""What the daemon takes as root: it gets some nine times as much of a processor as a thread of 0 that wants the same one."""
USUAL = 0
"""What all else has that is started here, unless the settings say otherwise."""
AUTOGROUP = Path("/proc/self/autogroup")
"""The niceness of this process's session. Where the kernel groups threads by session (`sched_autogroup_enabled`, which most
distributions have on), the sessions share the processors, and a thread's own niceness counts within its session alone."""


def take_priority() -> None:
    """Give this process, which has one thread yet, the daemon's priority.

    Nothing is changed where the kernel does not allow that, or whoever started the process has given it a niceness. One
    that was executed anew may have it already. A session that it leads has it, too; what begins one of its own has not.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) in (USUAL, NICENESS):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
            os.register_at_fork(after_in_child=give_up_priority)
            if os.getsid(0) == os.getpid():  # else it is that of a shell
                AUTOGROUP.write_text(f"{NICENESS}\n")


def give_up_priority(session: int = 0) -> None:
    """Take the daemon's priority from a process that leads this session, which it has just begun, and from its group; or
    from this process.

    A program of another user gives it up by itself, before it is executed: it might have begun another one by then.
    """
    which = os.PRIO_PGRP if session else os.PRIO_PROCESS
    with suppress(OSError):  # it is over, or another user's by now
        if os.getpriority(which, session) == NICENESS:
            os.setpriority(which, session, USUAL)
