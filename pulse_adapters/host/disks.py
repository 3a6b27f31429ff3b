"""File system usage, sampled so that a dead file server cannot block the daemon."""

import asyncio
import os
import select
from collections.abc import Mapping, Sequence

from pulse_adapters.host.spawner import CommandTimedOut, Spawner
from pulse_adapters.workers.proc import is_alive
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.ports import ProcessId

_PATIENCE_S = 2.0
# Their statvfs answers from memory. Everything else (nfs, cifs, fuse, autofs …) may wait for somebody.
_LOCAL = frozenset(
    {"bcachefs", "btrfs", "devtmpfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660", "jfs"}
    | {"msdos", "ntfs3", "overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs"}
)


class Disks:
    """Samples local file systems directly, and the others in a short-lived child that can be killed."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner
        self._mounts = Mounts()
        self._stuck: dict[str, tuple[ProcessId, ...]] = {}

    async def sample(self, paths: Sequence[str]) -> Mapping[str, Json]:
        """For each path: used fraction, free bytes, used fraction of inodes; or `error`."""
        distant = [path for path in paths if not self._mounts.is_local(path)]
        found = {path: _sample_local(path) for path in paths if path not in distant}
        if distant:
            answers = await asyncio.gather(*(self._sample_remote(path) for path in distant))
            found.update(zip(distant, answers, strict=True))
        return {path: found[path] for path in paths}

    async def _sample_remote(self, path: str) -> Mapping[str, Json]:
        if any(is_alive(one) for one in self._stuck.get(path, ())):
            return {"error": "the last one who asked is still waiting for an answer"}
        try:
            outcome = await self._spawner.run(
                ["stat", "-f", "-c", "%b %f %a %S %c %d", path], timeout=_PATIENCE_S
            )
        except CommandTimedOut as error:
            self._stuck[path] = error.left
            return {"error": f"did not answer within {_PATIENCE_S:g} s"}
        except PulseError as error:
            return {"error": str(error)}
        if outcome.exit != 0:
            return {"error": outcome.output.strip()}
        return _usage(*(int(word) for word in outcome.output.split()))

    def close(self) -> None:
        """Close the watch on the mount table."""
        self._mounts.close()


def _sample_local(path: str) -> Mapping[str, Json]:
    try:
        said = os.statvfs(path)
    except OSError as error:
        return {"error": error.strerror}
    return _usage(said.f_blocks, said.f_bfree, said.f_bavail, said.f_frsize, said.f_files, said.f_ffree)


def _usage(
    blocks: int, free: int, available: int, size: int, inodes: int, inodes_free: int
) -> dict[str, Json]:
    """Used fractions as `df` counts: blocks reserved for root are neither used nor free; no inodes if there are none."""
    used = blocks - free
    shares: dict[str, Json] = {
        "used": round(used / (used + available), 5) if used + available else 0.0,
        "free": available * size,
    }
    return shares | ({"inodes": round(1 - inodes_free / inodes, 5)} if inodes else {})


class Mounts:
    """The mount table, read again only when the kernel reports a change."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/mounts", os.O_RDONLY)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLPRI | select.POLLERR)
        self._types = self._read()
        self._known: dict[str, bool] = {}

    def is_local(self, path: str) -> bool:
        """Whether a path, links followed, stays on local file systems."""
        if self._poll.poll(0):
            self._types, self._known = self._read(), {}
        if path not in self._known:
            self._known[path] = self._walk(path)
        return self._known[path]

    def _walk(self, path: str, links: int = 40) -> bool:
        """Follow the path; no component is touched before its file system is known to be local."""
        here = "/"
        steps = path.strip("/").split("/")
        while steps:
            here = os.path.normpath(os.path.join(here, steps.pop(0)))
            if self._type(here) not in _LOCAL:
                return False
            try:
                target = os.readlink(here)
            except OSError:
                continue
            return links > 0 and self._walk(os.path.join(os.path.dirname(here), target, *steps), links - 1)
        return True

    def _type(self, path: str) -> str:
        while path not in self._types and path != "/":
            path = os.path.dirname(path)
        return self._types.get(path, "")

    def _read(self) -> dict[str, str]:
        text = (
            b"".join(iter(lambda: os.read(self._file, 65536), b"")) if not os.lseek(self._file, 0, 0) else b""
        )
        fields = (line.split(b" ", 3) for line in text.splitlines())
        # Blanks in a mount point are written as octal.
        return {os.fsdecode(field[1].replace(b"\\040", b" ")): field[2].decode() for field in fields}

    def close(self) -> None:
        """Close the table."""
        os.close(self._file)
