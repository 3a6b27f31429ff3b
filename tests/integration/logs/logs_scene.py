"""Files that are written and rotated by hand, and a reader of them without its process around it."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulse_adapters.logs.followed_files import FollowedFiles


class Following:
    """`FollowedFiles` over patterns, drained on demand; `lines` are all lines that were read, by source."""

    def __init__(
        self, *patterns: str | Path, places: dict[str, Any] | None = None, known: bool = False
    ) -> None:
        self.patterns = [str(pattern) for pattern in patterns]
        self.lines: list[tuple[str, str]] = []
        self.told: list[tuple[str, str]] = []
        self.files = self._made(places or {}, self.patterns if known else [])

    def _made(self, places: dict[str, Any], known: list[str]) -> FollowedFiles:
        patterns = dict(enumerate(self.patterns))
        return FollowedFiles(patterns, known, places, lambda whose, words: self.told.append((whose, words)))

    def drain(self, scan: bool = True) -> list[str]:
        """Read all there is; the lines that are new. scan: also look for files without being told."""
        before = len(self.lines)
        if self.files.process_events() or scan:
            self.files.scan()
        self.files.look()
        while self.files.dirty:
            for trail in tuple(self.files.dirty.values()):
                for line in self.files.take(trail, time.monotonic() + 60).split(b"\n")[:-1]:
                    self.lines.append((trail.name, line.decode("utf-8", "replace")))
        return [line for _, line in self.lines[before:]]

    def read_a_little(self) -> None:
        """Read one block of each trail that has news."""
        if self.files.process_events():
            self.files.scan()
        for trail in tuple(self.files.dirty.values()):
            for line in self.files.take(trail, time.monotonic()).split(b"\n")[:-1]:
                self.lines.append((trail.name, line.decode()))

    def places(self) -> dict[str, Any]:
        return {name: trail.place() for name, trail in self.files.trails.items()}

    def restart(self, places: dict[str, Any] | None = None) -> None:
        """Begin again where the reader stood, as after a crash."""
        places = self.places() if places is None else places
        self.close()
        self.files = self._made(places, self.patterns)

    def close(self) -> None:
        """Let go of every file."""
        for trail in self.files.trails.values():
            for followed in trail.files:
                followed.close()
        if self.files.watches.fileno is not None:
            os.close(self.files.watches.fileno)


def write(path: Path, *lines: str) -> None:
    """Append whole lines."""
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def shift(path: Path) -> Path:
    """Rename the rotated files of a path one up, oldest first, as logrotate does; where the newest is to be."""
    numbers = [
        int(one.suffix[1:]) for one in path.parent.glob(f"{path.name}.*") if one.suffix[1:].isdecimal()
    ]
    for number in sorted(numbers, reverse=True):
        path.with_name(f"{path.name}.{number}").rename(path.with_name(f"{path.name}.{number + 1}"))
    return path.with_name(f"{path.name}.1")


def rename(path: Path, create: bool = True) -> None:
    """Rotate by rename; a new file comes at once or with the next line."""
    path.rename(shift(path))
    if create:
        path.touch()


def copytruncate(path: Path) -> None:
    """Rotate by a copy of which the original is emptied."""
    shutil.copyfile(path, shift(path))
    os.truncate(path, 0)


def delete(path: Path) -> None:
    """Rotate by doing away with it."""
    path.unlink()


def numbered(start: int = 0) -> Iterator[str]:
    """Lines that all differ."""
    number = start
    while True:
        yield f"line {number} {'x' * (number * 37 % 400)}"
        number += 1
