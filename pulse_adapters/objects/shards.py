"""What lies in a directory of objects, one part of it at a time."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEX = frozenset("0123456789abcdef")


class Shard(NamedTuple):
    """The old files of one part: objects by name with their bytes, and what a broken-off `put` left."""

    objects: dict[str, int]
    leftovers: dict[Path, int]


def shards(directory: Path, before: float) -> Iterator[Shard]:
    """The files that nobody touched since `before` (seconds since the epoch), part by part; what is strange is left."""
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
