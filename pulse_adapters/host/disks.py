"""File system usage, sampled so that a dead file server cannot block the daemon."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from pulse_adapters.host.spawner import CommandTimedOut, Spawner
from pulse_adapters.workers.file_systems import mount_point
from pulse_adapters.workers.proc import is_alive
from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json
from pulse_core.ports.host import ProcessId

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
        self._stuck: dict[str, tuple[ProcessId, ...]] = {}

    async def sample(self, paths: Sequence[str]) -> Mapping[str, Json]:
        """For each path: used fraction, free bytes, used fraction of inodes; or `error`."""
        said = {path: _sample_local(path) for path in paths if is_local(path)}
        if others := [path for path in paths if path not in said]:
            said.update(zip(others, await asyncio.gather(*map(self._sample, others)), strict=True))
        return {path: said[path] for path in paths}

    async def _sample(self, path: str) -> Mapping[str, Json]:
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


def is_local(path: str) -> bool:
    """Whether a path, links followed, stays on local file systems, by the mount table of this moment."""
    with open("/proc/self/mounts", "rb") as table:
        fields = [line.split(b" ", 3) for line in table]
    types = {mount_point(field[1]): field[2].decode() for field in fields}
    return _stays_local(path, types)


def _stays_local(path: str, types: Mapping[str, str], links: int = 40) -> bool:
    """Follow the path; no component is touched before its file system is known to be local."""
    here = "/"
    steps = path.strip("/").split("/")
    while steps:
        here = os.path.normpath(os.path.join(here, steps.pop(0)))
        mount = here
        while mount not in types and mount != "/":
            mount = os.path.dirname(mount)
        if types.get(mount, "") not in _LOCAL:
            return False
        try:
            target = os.readlink(here)
        except OSError:
            continue
        onwards = os.path.join(os.path.dirname(here), target, *steps)
        return links > 0 and _stays_local(onwards, types, links - 1)
    return True
