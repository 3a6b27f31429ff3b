"""The cage that the child locks itself into before it loads a line of the authors' code."""

import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pulse_adapters.rule_host import landlock, seccomp
from pulse_adapters.rule_host.numbers import NUMBERS
from pulse_adapters.rule_host.syscalls import Memory, prctl, syscall

MIB = 1024 * 1024
FILES, FILE_BYTES = 32, 16 * MIB
_NO_NEW_PRIVS, _DEATH_SIGNAL = 38, 1
_CAPABILITIES = 0x20080522
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo",
    "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom",
)  # fmt: skip


def lock(readable: Iterable[str], scratch: str, memory: int, user: Sequence[int] | None) -> Mapping[str, Any]:
    """Lock this process in, for ever; which parts hold. memory: bytes beyond what it has; user: uid and gid."""
    allowed = [*readable, *_python(), *_SYSTEM]
    held = {
        "rlimits": _tried(lambda: _limit(memory)),
        "user": user is not None and _tried(lambda: _become(*user)),
    }
    _tried(_without_capabilities)
    prctl(_DEATH_SIGNAL, signal.SIGKILL)
    prctl(_NO_NEW_PRIVS, 1)
    abi = landlock.abi() or 0
    is_walled = abi > 0 and _tried(lambda: landlock.restrict(allowed, [scratch, os.devnull], abi))
    is_filtered = seccomp.supported() and _tried(lambda: seccomp.install(os.getpid()))
    return {"landlock": abi if is_walled else None, "seccomp": is_filtered, **held}


def _tried(work: Callable[[], None]) -> bool:
    try:
        work()
    except (OSError, ValueError):
        return False
    return True


def _limit(memory: int) -> None:
    with open("/proc/self/statm") as told:
        pages = int(told.read().split()[0])
    size = pages * resource.getpagesize() + memory
    limits = {
        resource.RLIMIT_AS: size,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))


def _become(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _without_capabilities() -> None:
    header, none = Memory(struct.pack("=Ii", _CAPABILITIES, 0)), Memory(bytes(24))
    number = NUMBERS["capset"][0 if platform.machine() == "x86_64" else 1]
    assert number is not None
    syscall(number, header.address, none.address)


def _python() -> set[str]:
    """Where Python's own files are, those of its packages, and the libraries that are loaded."""
    found = {os.path.dirname(os.__file__)}
    found.update(path for path in sys.path if path.endswith("-packages"))
    for name in ("pulse_core", "pulse_adapters", "pydantic", "pydantic_core"):
        found.add(os.path.dirname(str(sys.modules[name].__file__)))
    with open("/proc/self/maps") as maps:
        mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
    return found | {os.path.dirname(path) for path in mapped if path.startswith("/")}
