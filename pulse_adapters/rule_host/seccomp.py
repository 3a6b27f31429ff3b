"""Seccomp: system calls that no rule needs are refused, whatever Landlock knows of them."""

import errno
import platform
import struct
from collections.abc import Iterable

from pulse_adapters.rule_host.numbers import AUDIT, DENIED, NUMBERS
from pulse_adapters.rule_host.syscalls import Memory, prctl

_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_X32 = 0x40000000
_SETOWN, _SETSIG, _SETOWN_EX = 8, 10, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
_UNIX, _THREAD = 1, 0x10000
_ROOMY = (
    "clone", "socketpair", "sendto", "recvfrom", "shutdown", "getsockname", "getpeername", "getsockopt"
)  # fmt: skip
"""What is allowed besides in a roomy cage: threads, and pairs of sockets, which a loop wakes itself by."""

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: of classic BPF."""


def supported() -> bool:
    """Whether the filter is written for this machine."""
    return platform.machine() in AUDIT


def install(pid: int, roomy: bool = False) -> None:
    """Filter this thread's system calls for ever; `no_new_privs` must be set. Raises OSError."""
    program = assembled(platform.machine(), pid, roomy)
    code = Memory(b"".join(struct.pack("=HBBI", *one) for one in program))
    whole = Memory(struct.pack("@HP", len(program), code.address))
    prctl(_SET_SECCOMP, _MODE_FILTER, whole.address)


def assembled(machine: str, pid: int, roomy: bool = False) -> list[Instruction]:
    """The filter; `pid`: the process that may signal itself and ask for its own limits.

    roomy: threads are allowed, and sockets in pairs that can be tied to nothing else.
    """
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in NUMBERS.items()}
    eperm, enosys = (_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
    program: list[Instruction] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, AUDIT[machine]), eperm, (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), eperm]
    program += _when(numbers["clone3"], [enosys])  # then the C library tries clone
    program += _when(numbers["tgkill"], _only(0, [pid], eperm))
    program += _when(numbers["prlimit64"], [*_only(2, [0], eperm)[:-1], *_only(0, [0, pid], eperm)])
    program += _when(numbers["fcntl"], _none_of(1, [_SETOWN, _SETSIG, _SETOWN_EX], eperm))
    program += _when(numbers["ioctl"], _none_of(1, [_FIOSETOWN, _SIOCSPGRP], eperm))
    if roomy:
        program += _when(numbers["socketpair"], _only(0, [_UNIX], eperm))
        program += _when(numbers["sendto"], _only(4, [0], eperm))  # to the other end, and no address
        program += _when(numbers["clone"], _with(0, _THREAD, eperm))
    for name in DENIED:
        if numbers[name] is not None and not (roomy and name in _ROOMY):
            program += _when(numbers[name], [eperm])
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _when(number: int | None, then: list[Instruction]) -> list[Instruction]:
    assert number is not None
    return [(_EQUAL, 0, len(then), number), *then]


def _argument(place: int, high: bool = False) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * place + (4 if high else 0))


def _only(place: int, values: Iterable[int], refuse: Instruction) -> list[Instruction]:
    """Refuse unless an argument is one of these (whole 64 bits: the upper half is 0); then allow."""
    checks: list[Instruction] = [_argument(place, high=True), (_EQUAL, 1, 0, 0), refuse, _argument(place)]
    values = list(values)
    for left, value in zip(range(len(values), 0, -1), values, strict=True):
        checks.append((_EQUAL, left, 0, value))
    return [*checks, refuse, (_RETURN, 0, 0, _ALLOW)]


def _with(place: int, bit: int, refuse: Instruction) -> list[Instruction]:
    """Refuse unless an argument has this bit; then allow."""
    return [_argument(place), (_ANY_OF, 1, 0, bit), refuse, (_RETURN, 0, 0, _ALLOW)]


def _none_of(place: int, values: Iterable[int], refuse: Instruction) -> list[Instruction]:
    """Refuse if the lower half of an argument is one of these; else allow."""
    checks: list[Instruction] = [_argument(place)]
    for value in values:
        checks += [(_EQUAL, 0, 1, value), refuse]
    return [*checks, (_RETURN, 0, 0, _ALLOW)]
