"""Confines a child process before it loads any of the authors' code."""

import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from pulse_adapters.sandbox import landlock, seccomp
from pulse_adapters.sandbox.scratch_folder import MOST_BYTES, MOST_FILES
from pulse_adapters.workers.drop_privileges import become_user
from pulse_adapters.workers.syscall_numbers import number_of
from pulse_adapters.workers.syscalls import Memory, prctl, syscall

MIB = 1024 * 1024
_NO_NEW_PRIVS, _DEATH_SIGNAL = 38, 1
_CAPABILITIES = 0x20080522
_NEW_MOUNTS = 0x20000
_RECURSIVE, _FOLLOWER = 0x4000, 0x80000
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo",
    "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom",
)  # fmt: skip


class ConfinementTerms(NamedTuple):
    """What is allowed, if other than for rules. roomy: threads and socket pairs are allowed; files: open at a time.

    scratch: bytes and files that its scratch folder may hold; writable: where it may write besides; listable: where it
    may learn names, and no more.
    """

    files: int = 32
    file_bytes: int = 16 * MIB
    roomy: bool = False
    scratch: tuple[int, int] = (MOST_BYTES, MOST_FILES)
    writable: Sequence[str] = ()
    listable: Sequence[str] = ()


RULES = ConfinementTerms()


def confine_process(
    readable: Iterable[str],
    scratch: str,
    memory: int,
    user: Sequence[int] | None,
    terms: ConfinementTerms = RULES,
) -> Mapping[str, Any]:
    """Lock this process in, for ever; which parts hold. memory: bytes beyond what it has; user: uid and gid.

    scratch: its folder, which is the user's then, with a file system of its own if the kernel lets us mount one.

    Raises OSError if the user can't be had: what is missing of the rest is told, but root's rights are not left to it.
    """
    allowed = [*readable, *_python(), *_SYSTEM]
    held = {"rlimits": _tried(lambda: _limit(memory, terms)), "user": user is not None}
    if user:
        uid, gid = user
        held["scratch"] = _tried(lambda: _mount_scratch(scratch, (uid, gid), *terms.scratch))
        if not held["scratch"]:
            os.chown(scratch, uid, gid)
        become_user(uid, gid)
    _tried(_without_capabilities)
    prctl(_DEATH_SIGNAL, signal.SIGKILL)  # after the change of user, which takes it back
    prctl(_NO_NEW_PRIVS, 1)
    abi = landlock.abi() or 0
    written = [scratch, os.devnull, *terms.writable]
    is_walled = abi > 0 and _tried(lambda: landlock.restrict(allowed, written, abi, terms.listable))
    is_filtered = seccomp.supported() and _tried(
        lambda: seccomp.install_filter(seccomp.build_filter(platform.machine(), os.getpid(), terms.roomy))
    )
    if terms.roomy and not is_filtered:
        _tried(_alone)
    return {"landlock": abi if is_walled else None, "seccomp": is_filtered, **held}


def _mount_scratch(folder: str, user: tuple[int, int], most_bytes: int, most_files: int) -> None:
    """Give this process a view of its own of all mounts, and there a file system in memory over its scratch folder, for
    this uid and gid. Raises OSError.

    The view follows the machine's: what is unmounted there is not held here.
    """
    syscall(number_of("unshare"), _NEW_MOUNTS)
    _mount("none", "/", "", _RECURSIVE | _FOLLOWER, "")
    uid, gid = user
    options = f"size={most_bytes},nr_inodes={most_files + 1},mode=0700,uid={uid},gid={gid}"
    _mount("pulse-scratch", folder, "tmpfs", _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS, options)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [Memory(word.encode() + b"\0") for word in (source, target, kind, options)]
    first, second, third, last = (word.address for word in words)
    syscall(number_of("mount"), first, second, third, flags, last)


def _tried(work: Callable[[], None]) -> bool:
    try:
        work()
    except (OSError, ValueError):
        return False
    return True


def _limit(memory: int, terms: ConfinementTerms) -> None:
    with open("/proc/self/statm") as told:
        pages = int(told.read().split()[0])
    size = pages * resource.getpagesize() + memory
    limits = {
        resource.RLIMIT_AS: size,
        resource.RLIMIT_NOFILE: terms.files,
        resource.RLIMIT_FSIZE: terms.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))
    if not terms.roomy:
        _alone()


def _alone() -> None:
    """Neither processes nor threads."""
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _without_capabilities() -> None:
    header, none = Memory(struct.pack("=Ii", _CAPABILITIES, 0)), Memory(bytes(24))
    syscall(number_of("capset"), header.address, none.address)


def _python() -> set[str]:
    """Where Python's own files are, those of its packages, and the libraries that are loaded."""
    found = {os.path.dirname(os.__file__)}
    found.update(path for path in sys.path if path.endswith("-packages"))
    for name in ("pulse_core", "pulse_adapters", "pydantic", "pydantic_core"):
        if spec := find_spec(name):
            found.add(os.path.dirname(str(spec.origin)))
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
    return found | {os.path.dirname(path) for path in mapped if path.startswith("/")}
