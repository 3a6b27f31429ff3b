"""Seccomp: hands may act on any process but the daemon, which they can neither signal nor slow down nor look into."""

import platform
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pulse_adapters.action_host import warden
from pulse_adapters.child import bpf
from pulse_adapters.child.bpf import (
    ALLOW,
    ASK,
    ENOSYS,
    EPERM,
    Instruction,
    argument,
    if_bits,
    if_one_of,
    when,
)
from pulse_adapters.child.numbers import NUMBERS

_SETOWN, _SETOWN_EX = 8, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
_ATTACH, _SEIZE = 16, 0x4206
_NEGATIVE = 0x80000000
_OF_THREAD = (
    "tkill", "rt_sigqueueinfo", "process_vm_readv", "process_vm_writev", "prlimit64", "sched_setparam",
    "sched_setscheduler", "sched_setaffinity", "sched_setattr", "migrate_pages", "move_pages",
)  # fmt: skip
"""Calls whose first argument is the process, or any thread of it; 0 is who calls."""
PLACES: Mapping[str, int] = {
    **dict.fromkeys(_OF_THREAD, 0),
    "kill": 0, "perf_event_open": 1, "ptrace": 1, "setpriority": 1, "ioprio_set": 1, "fcntl": 2,
}  # fmt: skip
"""Where each call that is judged names the thread."""
_USER = {"setpriority": 2, "ioprio_set": 3}
"""The word for all processes of a user, the daemon's among them."""
_GONE = ("pidfd_getfd", "process_madvise", "process_mrelease")
"""Calls that name a process by a descriptor, of which a filter can't know whose it is."""


class Spared(NamedTuple):
    """Processes that are to be let alone, and the groups that they are in."""

    pids: tuple[int, ...]
    groups: tuple[int, ...]

    def plus(self, pid: int, group: int) -> "Spared":
        """And this one."""
        return Spared((*self.pids, pid), (*self.groups, group))


def spare(pid: int, group: int) -> Mapping[str, bool]:
    """Take the means to hurt this process from ours and all that come out of it, for ever; which parts hold.

    A filter knows the numbers of processes, not those of a daemon's threads, which come and go: those a warden knows.
    """
    if not bpf.supported():
        return {"seccomp": False, "warden": False}
    spared, machine = Spared((pid,), (group,)), platform.machine()
    places = {_number(machine, name): place for name, place in PLACES.items()}
    try:
        if warden.possible():
            with warden.begun(pid, places) as (engine_controller, entrust):
                entrust(
                    bpf.put(
                        assembled(machine, spared.plus(engine_controller, engine_controller), ASK),
                        listener=True,
                    )
                )
            return {"seccomp": True, "warden": True}
    except OSError:
        pass  # somebody above has a listener, and there is one at most; or no more processes
    try:
        bpf.put(assembled(machine, spared, ALLOW))
    except OSError:
        return {"seccomp": False, "warden": False}
    return {"seccomp": True, "warden": False}


def assembled(machine: str, spared: Spared, other: Instruction) -> list[Instruction]:
    """The filter. other: what becomes of a call that names no process of those that are spared."""
    program = bpf.begin(machine)

    def add(name: str, then: list[Instruction]) -> None:
        program.extend(when(_number(machine, name), then))

    signalled = [*spared.pids, *(-group for group in spared.groups), -1]
    for name in _OF_THREAD:
        add(name, _judged(0, spared.pids, other))
    for name in ("tgkill", "rt_tgsigqueueinfo"):  # they name the process besides its thread
        add(name, [argument(0), *if_one_of(spared.pids, EPERM), ALLOW])
    add("kill", _judged(0, signalled, other))
    add("perf_event_open", _judged(1, spared.pids, other))
    for name, user in _USER.items():
        which = [argument(0), *if_one_of([user], EPERM)]
        add(name, [*which, *_judged(1, {*spared.pids, *spared.groups}, other)])
    add("ptrace", _if(0, (_ATTACH, _SEIZE), _judged(1, spared.pids, other)))
    add(
        "fcntl",
        [argument(1), *if_one_of([_SETOWN_EX], EPERM), *_if(1, (_SETOWN,), _judged(2, signalled, other))],
    )
    add("ioctl", [argument(1), *if_one_of((_FIOSETOWN, _SIOCSPGRP), EPERM), ALLOW])
    for name in _GONE:
        add(name, [EPERM])
    add("pidfd_send_signal", [ENOSYS])  # then programs take kill, as on an older kernel
    return [*program, ALLOW]


def _judged(place: int, spared: Iterable[int], other: Instruction) -> list[Instruction]:
    """Refuse what names one of these, allow what names the caller or another group."""
    known = [*if_one_of(spared, EPERM), *if_one_of([0], ALLOW), *if_bits(_NEGATIVE, ALLOW)]
    return [argument(place), *known, other]


def _if(place: int, values: tuple[int, ...], then: list[Instruction]) -> list[Instruction]:
    """Allow it unless an argument is one of these; then go on."""
    return [argument(place), *bpf.unless_one_of(values, ALLOW), *then]


def _number(machine: str, name: str) -> int:
    number = NUMBERS[name][0 if machine == "x86_64" else 1]
    assert number is not None
    return number
