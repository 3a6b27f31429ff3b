"""What a guarded process is started with: its user, group, umask, priority and limits."""

import os
import resource
from pathlib import Path

from pulse_adapters.workers.spawn import ProcessAttributes, ProcessUser
from pulse_adapters.workers.users import find_group, process_user
from pulse_core.model.errors import PulseError
from pulse_core.settings.processes import UNLIMITED, ProcessSettings


def started_as(process: ProcessSettings) -> tuple[ProcessUser | None, ProcessAttributes | None]:
    """Whom `start` runs as, and what it does not have of the daemon. Raises PulseError for what the daemon can't give."""
    given = ProcessAttributes(
        _gid(process.group),
        int(process.umask, 8) if process.umask else None,
        _nice(process.nice),
        {_number(name): _bound(name, value) for name, value in process.limits.given.items()},
    )
    return process_user(process.user), None if given == ProcessAttributes() else given


def user_of(name: str, group: str) -> ProcessUser | None:
    """Whom something runs as that has no more of a process than its user and its group; None: as this one. Raises PulseError
    as `started_as`."""
    user, gid = process_user(name), _gid(group)
    return user._replace(groups=(*user.groups, gid)) if user and gid is not None else user


def _gid(name: str) -> int | None:
    if name and (group := find_group(name)) is None:
        raise PulseError(f"there is no group {name!r} on this machine")
    gid = group.gid if name and group else None
    if gid not in (None, os.getegid()):
        _demand_root(f"start it as group {name!r}", "group")
    return gid


def _nice(nice: int | None) -> int | None:
    if nice is not None and nice < (own := os.getpriority(os.PRIO_PROCESS, 0)):
        _demand_root(f"start it with nice = {nice}, its own is {own}", "nice")
    return nice


def _number(name: str) -> int:
    number: int = getattr(resource, f"RLIMIT_{name.upper()}")
    return number


def _bound(name: str, value: int) -> int:
    """The limit as the kernel takes it, which has no unlimited number of open files."""
    most = int(Path("/proc/sys/fs/nr_open").read_text()) if name == "nofile" else resource.RLIM_INFINITY
    wanted = most if value == UNLIMITED else value
    if _is_more(wanted, most):
        raise PulseError(f"limits.nofile is {value}, and the kernel allows {most} (fs.nr_open); lower it")
    hard = resource.getrlimit(_number(name))[1]
    if _is_more(wanted, hard):
        _demand_root(
            f"give it {name} = {'unlimited' if value == UNLIMITED else value}, its own is {hard}", "limits"
        )
    return wanted


def _is_more(one: int, than: int) -> bool:
    return than != resource.RLIM_INFINITY and (one == resource.RLIM_INFINITY or one > than)


def _demand_root(what: str, key: str) -> None:
    if os.geteuid() != 0:
        raise PulseError(
            f"only root's daemon can {what}; install that (sudo upulse daemon install), or change `{key}`"
        )
