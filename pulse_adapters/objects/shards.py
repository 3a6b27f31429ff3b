"""Lists a directory of objects, one shard at a time."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEX = frozenset("0123456789abcdef")


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
        yield _shard(directory / name, before)


def _shard(path: Path, before: float) -> Shard:
    found = Shard({}, {})
    with os.scandir(path) as entries:
        for entry in entries:
            state = entry.stat(follow_symlinks=False)
            if not entry.is_file(follow_symlinks=False) or state.st_mtime >= before:
                continue
            if entry.name.startswith(".new-"):
                found.leftovers[Path(entry.path)] = state.st_size
            elif len(entry.name) == 62 and _HEX.issuperset(entry.name):
                found.objects[path.name + entry.name] = state.st_size
    return found
