"""Keeps children that run authors' code from taking the processor and the disk from others.

Limits and capabilities keep an action host from real-time scheduling and from a nice value below its own. While it runs
as the daemon's user, root, these do not keep it from other processes' priorities and from real-time access to the disk:
a filter refuses that. Another one keeps what it begins from passing for the daemon's own children.
"""

import os
import platform
import resource
import struct
from contextlib import suppress

from pulse_adapters.sandbox.seccomp import (
    ALLOW,
    ENOSYS,
    EPERM,
    Instruction,
    argument,
    begin,
    if_bits,
    if_one_of,
    install_filter,
    supported,
    unless_zero,
    when,
)
from pulse_adapters.workers.syscall_numbers import NUMBERS, number_of
from pulse_adapters.workers.syscalls import Memory, prctl, syscall

GATES_NICE, LEAST_NICE = 10, 19
_CAPABILITIES_VERSION, _DROP_FROM_BOUNDING_SET = 0x20080522, 24
_SYS_NICE, _SYS_RESOURCE = 23, 24
"""Capabilities; with the second one, which goes beyond hard limits, the first one's loss would be in vain."""
_OF_A_USER, _IO_OF_A_USER = 2, 3
_ITSELF, _IDLE = 1, 3 << 13
_PARENT, _THREAD = 0x8000, 0x10000
"""Flags of a new process: a child of its parent's parent; a thread, of which that is true always."""
_REAL_TIME_IO, _LOW_IO = 0x2000, 0x4000
"""Bits of an I/O priority's class: real-time has the first one alone."""


def refuse_high_priority(user: object) -> None:
    """Refuse this process, for ever, to rise above others; user: that it takes on later, None if it stays the daemon's."""
    for what in (resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE):
        resource.setrlimit(what, (0, 0))
    if user is None and os.geteuid() == 0:
        with suppress(
            OSError
        ):  # a container's root may lack the right to give up rights, and then the others as well
            _drop_capabilities(_SYS_NICE, _SYS_RESOURCE)
        if supported():
            install_filter(build_priority_filter(platform.machine()))


def refuse_siblings() -> None:
    """Refuse this process, for ever, to begin processes as children of its parent, which nobody would reap.

    Only root may filter without more: else programs that gain rights, as sudo, would not do so any more.
    """
    if os.geteuid() == 0 and supported():
        install_filter(build_sibling_filter(platform.machine()))


def build_sibling_filter(machine: str) -> list[Instruction]:
    """The filter: a new process is a child of the one that begins it."""
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in NUMBERS.items()}
    program = begin(machine)
    program += when(numbers["clone3"], [ENOSYS])  # its flags can't be seen; the C library tries clone then
    program += when(
        numbers["clone"], [argument(0), *if_bits(_THREAD, ALLOW), *if_bits(_PARENT, EPERM), ALLOW]
    )
    return [*program, ALLOW]


def build_priority_filter(machine: str) -> list[Instruction]:
    """The filter: a process changes priorities, scheduler and processors of no other than itself."""
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in NUMBERS.items()}
    program = begin(machine)
    program += when(
        numbers["setpriority"], [argument(0), *if_one_of([_OF_A_USER], EPERM), *unless_zero(1), ALLOW]
    )
    io_class = [argument(2), *if_bits(_LOW_IO, ALLOW), *if_bits(_REAL_TIME_IO, EPERM), ALLOW]
    program += when(
        numbers["ioprio_set"], [argument(0), *if_one_of([_IO_OF_A_USER], EPERM), *unless_zero(1), *io_class]
    )
    for name in ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"):
        program += when(numbers[name], [*unless_zero(0), ALLOW])
    return [*program, ALLOW]


def lower_priority(nice: int = GATES_NICE) -> None:
    """Give way to everybody else, at the processor and at the disk."""
    os.nice(nice)
    with suppress(OSError):
        syscall(number_of("ioprio_set"), _ITSELF, 0, _IDLE)


def _drop_capabilities(*numbers: int) -> None:
    for number in numbers:
        prctl(_DROP_FROM_BOUNDING_SET, number)
    dropped = sum(1 << number for number in numbers)
    with open("/proc/self/status") as told:
        held = dict(line.split(":", 1) for line in told)
    kept = [int(held[name], 16) & ~dropped for name in ("CapEff", "CapPrm", "CapInh")]
    halves = [one >> shift & 0xFFFFFFFF for shift in (0, 32) for one in kept]
    header = Memory(struct.pack("=Ii", _CAPABILITIES_VERSION, 0))
    content = Memory(struct.pack("=6I", *halves))
    syscall(number_of("capset"), header.address, content.address)
