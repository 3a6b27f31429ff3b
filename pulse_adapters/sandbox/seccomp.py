"""Seccomp: system calls that no rule needs are refused, whatever Landlock knows of them."""

import platform
from collections.abc import Iterable

from pulse_adapters.workers import seccomp_filter
from pulse_adapters.workers.seccomp_filter import ALLOW, ENOSYS, EPERM, Instruction, argument, only, when
from pulse_adapters.workers.syscall_numbers import DENIED, NUMBERS

_SETOWN, _SETSIG, _SETOWN_EX = 8, 10, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
_UNIX, _THREAD = 1, 0x10000
_ROOMY = (
    "clone", "socketpair", "sendto", "recvfrom", "shutdown", "getsockname", "getpeername", "getsockopt"
)  # fmt: skip
"""What is allowed besides in a roomy cage: threads, and pairs of sockets, which a loop wakes itself by."""

supported = seccomp_filter.supported


def install(pid: int, roomy: bool = False) -> None:
    """Filter this thread's system calls for ever. Raises OSError."""
    seccomp_filter.install_filter(build_filter(platform.machine(), pid, roomy))


def build_filter(machine: str, pid: int, roomy: bool = False) -> list[Instruction]:
    """The filter; `pid`: the process that may signal itself and ask for its own limits.

    roomy: threads are allowed, and sockets in pairs that can be tied to nothing else.
    """
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in NUMBERS.items()}
    program = seccomp_filter.begin(machine)
    program += when(numbers["clone3"], [ENOSYS])  # then the C library tries clone
    program += when(numbers["tgkill"], only(0, [pid]))
    program += when(numbers["prlimit64"], [*seccomp_filter.unless_zero(2), *only(0, [0, pid])])
    program += when(numbers["fcntl"], _none_of(1, [_SETOWN, _SETSIG, _SETOWN_EX]))
    program += when(numbers["ioctl"], _none_of(1, [_FIOSETOWN, _SIOCSPGRP]))
    if roomy:
        program += when(numbers["socketpair"], only(0, [_UNIX]))
        program += when(numbers["sendto"], only(4, [0]))  # to the other end, and no address
        program += when(numbers["clone"], [argument(0), *seccomp_filter.if_bits(_THREAD, ALLOW), EPERM])
    for name in DENIED:
        if numbers[name] is not None and not (roomy and name in _ROOMY):
            program += when(numbers[name], [EPERM])
    return [*program, ALLOW]


def _none_of(place: int, values: Iterable[int]) -> list[Instruction]:
    """Refuse if the lower half of an argument is one of these; else allow."""
    return [argument(place), *seccomp_filter.if_one_of(values, EPERM), ALLOW]
