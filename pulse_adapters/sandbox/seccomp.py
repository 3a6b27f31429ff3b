"""Seccomp: system calls that no rule needs are refused, whatever Landlock knows of them."""

import errno
import platform
import struct
from collections.abc import Iterable, Sequence

from pulse_adapters.workers.syscall_numbers import AUDIT, DENIED, NUMBERS
from pulse_adapters.workers.syscalls import Memory, prctl

_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NO_NEW_PRIVS, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_X32 = 0x40000000

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: of classic BPF."""

ALLOW: Instruction = (_RETURN, 0, 0, _ALLOW)
EPERM: Instruction = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
ENOSYS: Instruction = (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)
"""As if the kernel did not know it: programs then take another way."""

_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""Of `fcntl`: copies, flags and locks of a descriptor, and the size of a pipe. Not leases, which hold up whoever opens the
file, nor signals."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)
"""Of `ioctl`: whether it is a terminal, how large, what waits to be read, and flags. Nothing of file systems."""
_UNIX, _THREAD = 1, 0x10000
_ROOMY = (
    "clone", "socketpair", "sendto", "recvfrom", "shutdown", "getsockname", "getpeername", "getsockopt"
)  # fmt: skip
"""What is allowed besides in a roomy cage: threads, and pairs of sockets, which a loop wakes itself by."""


def supported() -> bool:
    """Whether filters are written for this machine."""
    return platform.machine() in AUDIT


def build_filter(machine: str, pid: int, roomy: bool = False) -> list[Instruction]:
    """The filter; `pid`: the process that may signal itself and ask for its own limits.

    roomy: threads are allowed, and sockets in pairs that can be tied to nothing else.
    """
    numbers = {name: pair[0 if machine == "x86_64" else 1] for name, pair in NUMBERS.items()}
    program = begin(machine)
    program += when(numbers["clone3"], [ENOSYS])  # then the C library tries clone
    program += when(numbers["tgkill"], only(0, [pid]))
    program += when(numbers["prlimit64"], [*unless_zero(2), *only(0, [0, pid])])
    program += when(numbers["fcntl"], _one_of(1, _FCNTL))
    program += when(numbers["ioctl"], _one_of(1, _IOCTL))
    if roomy:
        program += when(numbers["socketpair"], only(0, [_UNIX]))
        program += when(numbers["sendto"], only(4, [0]))  # to the other end, and no address
        program += when(numbers["clone"], [argument(0), *if_bits(_THREAD, ALLOW), EPERM])
    for name in DENIED:
        if numbers[name] is not None and not (roomy and name in _ROOMY):
            program += when(numbers[name], [EPERM])
    return [*program, ALLOW]


def _one_of(place: int, values: Iterable[int]) -> list[Instruction]:
    """Allow if the lower half of an argument, all that the kernel looks at, is one of these; else refuse."""
    return [argument(place), *if_one_of(values, ALLOW), EPERM]


def begin(machine: str) -> list[Instruction]:
    """Refuse calls of another architecture, as 32-bit programs make them; then load the call's number."""
    program: list[Instruction] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, AUDIT[machine]), EPERM, (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), EPERM]
    return program


def when(number: int | None, then: list[Instruction]) -> list[Instruction]:
    """Handle one call by these instructions, which must end in a verdict."""
    assert number is not None
    return [(_EQUAL, 0, len(then), number), *then]


def argument(place: int, high: bool = False) -> Instruction:
    """Load the lower or the higher half of an argument."""
    return (_LOAD, 0, 0, 16 + 8 * place + (4 if high else 0))


def if_one_of(values: Iterable[int], then: Instruction) -> list[Instruction]:
    """Return `then` if the loaded value is one of these, as 32 bits."""
    return [one for value in values for one in ((_EQUAL, 0, 1, value & 0xFFFFFFFF), then)]


def if_bits(bits: int, then: Instruction) -> list[Instruction]:
    """Return `then` if the loaded value has any of these bits."""
    return [(_ANY_OF, 0, 1, bits), then]


def only(place: int, values: Iterable[int]) -> list[Instruction]:
    """Refuse unless an argument is one of these (whole 64 bits: the upper half is 0); then allow."""
    return [*_small(place), argument(place), *if_one_of(values, ALLOW), EPERM]


def unless_zero(place: int) -> list[Instruction]:
    """Refuse if an argument is anything; else go on."""
    return [*_small(place), argument(place), (_EQUAL, 1, 0, 0), EPERM]


def _small(place: int) -> list[Instruction]:
    return [argument(place, high=True), (_EQUAL, 1, 0, 0), EPERM]


def install_filter(program: Sequence[Instruction]) -> None:
    """Filter this thread's system calls for ever, and those of all that comes out of it. Raises OSError."""
    code = Memory(b"".join(struct.pack("=HBBI", *one) for one in program))
    whole = Memory(struct.pack("@HP", len(program), code.address))
    prctl(_NO_NEW_PRIVS, 1)  # without it only root may filter
    prctl(_SET_SECCOMP, _MODE_FILTER, whole.address)
