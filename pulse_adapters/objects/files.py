"""Blobs as files `ab/cdef…`, complete and synced before their name is returned; and the list of them, by shards."""

import asyncio
import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.plain_file import replace_plain
from pulse_core.model.errors import Damaged, LogUnavailable
from pulse_core.ports.loops import finish_despite_cancel

_NAME = re.compile(r"[0-9a-f]{64}")
_HEX = frozenset("0123456789abcdef")
LATEST = 1_000
"""How many of the last `put`s are safe from `discard`, whatever the clock says: an event may be about to name them."""


class FileObjects:
    """`Objects` and `ObjectReader` in a directory; the same blob is stored once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._settled: set[Path] = set()
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._latest_changes = threading.Lock()

    async def put(self, blob: bytes) -> str:
        """Store the blob and return its name; raises LogUnavailable if the disk does not take it."""
        name = hashlib.sha256(blob).hexdigest()
        try:
            await finish_despite_cancel(asyncio.to_thread(self._write, name, blob))
        except OSError as error:
            raise LogUnavailable(
                f"a payload of {len(blob)} bytes could not be stored in {self._directory} ({error.strerror});"
                " free some space or mend the permissions, then try again"
            ) from error
        return name

    async def get(self, name: str) -> bytes | None:
        """The blob of this name, or None; raises Damaged if the file is not what was stored."""
        return await finish_despite_cancel(asyncio.to_thread(self.read, name))

    def exists(self, name: str) -> bool:
        return bool(_NAME.fullmatch(name)) and self.path(name).exists()

    def read(self, name: str) -> bytes | None:
        if not _NAME.fullmatch(name):
            return None
        blob = _read(self.path(name))
        if blob is not None and hashlib.sha256(blob).hexdigest() != name:
            raise Damaged(
                f"the object {self.path(name)} is not what was stored under its name; restore it from a backup"
            )
        return blob

    def path(self, name: str) -> Path:
        """The path of the blob of this name."""
        return self._directory / name[:2] / name[2:]

    def discard(self, names: Iterable[str], untouched_since: float) -> list[int]:
        """Delete those objects that were not put since that time (seconds since the epoch); returns their sizes.

        Call it in a thread. Only for names that nothing refers to; one that is put concurrently stays, or is written again.
        """
        gone = []
        for name in names:
            path = self.path(name)
            with self._latest_changes:
                if (
                    name not in self._latest
                    and (size := _size_if_untouched(path, untouched_since)) is not None
                ):
                    path.unlink()
                    gone.append(size)
        return gone

    def _write(self, name: str, blob: bytes) -> None:
        with self._latest_changes:  # before looking whether it is there: from here on it stays
            self._latest.append(name)
        path = self.path(name)
        self._settle(path.parent)
        if _holds(path, blob):
            os.utime(path)
        else:
            replace_plain(path, blob)
        _sync(path.parent)

    def _settle(self, shard: Path) -> None:
        """Sync the shard's own directory entry, once in this process: its creator may have died before the sync.

        Anew for one that somebody has deleted.
        """
        if shard not in self._settled or not shard.exists():
            for directory in (shard.parent, shard):
                directory.mkdir(mode=0o700, exist_ok=True)
            _sync(shard.parent)
            self._settled.add(shard)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"the object {path} cannot be read ({error.strerror})") from error


def _holds(path: Path, blob: bytes) -> bool:
    """Whether the file is there and whole; an altered one is written again."""
    try:
        return path.stat().st_size == len(blob) and path.read_bytes() == blob
    except FileNotFoundError:
        return False


def _size_if_untouched(path: Path, since: float) -> int | None:
    """The size of the file if it was not modified since then; None if it was, or is missing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size if found.st_mtime < since else None


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Shard(NamedTuple):
    """The old files of one shard: objects by name with their bytes, and the remains of an interrupted `put`."""

    objects: dict[str, int]
    leftovers: dict[Path, int]


def shards(directory: Path, before: float) -> Iterator[Shard]:
    """The files not modified since `before` (seconds since the epoch), shard by shard; unknown files are left out."""
    try:
        names = sorted(name for name in os.listdir(directory) if len(name) == 2 and _HEX.issuperset(name))
    except FileNotFoundError:
        return
    for name in names:
        with suppress(NotADirectoryError):  # as any unknown file
            yield _shard(directory / name, before)


def _shard(path: Path, before: float) -> Shard:
    found = Shard({}, {})
    with os.scandir(path) as entries:
        for entry in entries:
            state = entry.stat(follow_symlinks=False)
            if not entry.is_file(follow_symlinks=False) or state.st_mtime >= before:
                continue
            if entry.name.endswith(".unfinished"):
                found.leftovers[Path(entry.path)] = state.st_size
            elif len(entry.name) == 62 and _HEX.issuperset(entry.name):
                found.objects[path.name + entry.name] = state.st_size
    return found
