"""The command lines of all processes, read as cheaply as the kernel allows."""

import os
import resource
from collections.abc import Iterator

from pulse_adapters.host.proc import SEARCHED, content

KEPT = 256
"""Files kept open at most; more would be felt by every fork, which copies the table of descriptors."""

_BYTES = 4 * SEARCHED  # no character is longer than four bytes
_KTHREADD, _IS_KERNELS = 2, 0x00200000


class CommandLines:
    """Reads /proc/PID/cmdline, and keeps the files open: four fifths of the time of a read are its open and close.

    Nothing that was read is remembered, so nothing can be out of date: not after an exec, nor when a process
    writes itself another title. An open file is one of its process, not of the pid: once that has ended, the
    kernel says so however often the pid is given out again, and the file is opened anew.
    """

    def __init__(self) -> None:
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._room = KEPT if allowed == resource.RLIM_INFINITY else min(KEPT, allowed // 4)
        self._files: dict[str, int] = {}
        self._kernels = _file_of_kernel_threads()

    def all(self) -> Iterator[tuple[str, bytes]]:
        """The pid of each process that has a command line, and what is searched of that, its words ended by NULs."""
        names = [name for name in os.listdir("/proc") if name.isdecimal()]
        kernels = self._kernel_threads()
        for gone in self._files.keys() - names:
            self._forget(gone)
        for name in names:
            if name not in kernels and (raw := self._read(name)):
                yield name, raw

    def of(self, pid: int) -> bytes:
        """The command line of one process; nothing if it is gone, or a zombie, or being executed just now."""
        return self._read(str(pid))

    def _kernel_threads(self) -> frozenset[str]:
        """The pids of threads of the kernel just now. Asked after the listing: who is one by now is no process."""
        listed, chunk = b"", b" "
        while chunk and self._kernels is not None:
            chunk = os.pread(self._kernels, 65536, len(listed))
            listed += chunk
        return frozenset(listed.decode().split())

    def _read(self, name: str) -> bytes:
        file = self._files.get(name)
        if file is None:
            return self._opened(name)
        try:
            return os.pread(file, _BYTES, 0)
        except OSError:  # the process has ended; another one may have its pid
            self._forget(name)
            return self._opened(name)

    def _opened(self, name: str) -> bytes:
        try:
            file = os.open(f"/proc/{name}/cmdline", os.O_RDONLY)
        except OSError:
            return b""
        try:
            raw = os.pread(file, _BYTES, 0)
        except OSError:
            raw = b""
        if raw and len(self._files) < self._room:
            self._files[name] = file
        else:
            os.close(file)
        return raw

    def _forget(self, name: str) -> None:
        os.close(self._files.pop(name))

    def close(self) -> None:
        """Close all files."""
        for name in list(self._files):
            self._forget(name)
        if self._kernels is not None:
            os.close(self._kernels)
            self._kernels = None


def _file_of_kernel_threads() -> int | None:
    """The list of kthreadd's children, or None where it is not to be seen, as in a container."""
    stat = content(f"/proc/{_KTHREADD}/stat")
    if not stat or not int(stat[stat.rindex(b")") + 2 :].split(b" ", 7)[6]) & _IS_KERNELS:
        return None
    try:
        return os.open(f"/proc/{_KTHREADD}/task/{_KTHREADD}/children", os.O_RDONLY)
    except OSError:
        return None  # a kernel without CONFIG_PROC_CHILDREN


def words(raw: bytes) -> list[str]:
    """The argv in a command line as it was read."""
    return os.fsdecode(raw.removesuffix(b"\0")).split("\0")


def text(raw: bytes) -> str:
    """The argv joined by spaces, as far as it is searched."""
    return os.fsdecode(raw.removesuffix(b"\0").replace(b"\0", b" "))[:SEARCHED]
