"""Finds the files that a pattern matches, and the directories in which others may appear."""

import os
import re
import stat
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

_WILD = re.compile(r"[*?\[]")
PACKED = (".gz", ".xz", ".bz2", ".zst", ".lz4", ".zip", ".Z")


class FoundFile(NamedTuple):
    """A regular file that a pattern matches."""

    path: str
    status: os.stat_result

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.status.st_dev, self.status.st_ino


class PatternScan(NamedTuple):
    """The files found, and the directories in which more may appear, each with the relevant name patterns."""

    files: list[FoundFile]
    watched: dict[str, set[str]]


def scan(pattern: str) -> PatternScan:
    """Find a pattern's files; for a missing directory the nearest existing one is returned for watching.

    Compressed files match only by their whole name: rotation makes them, and they have no lines.
    """
    found = PatternScan([], {})
    first, *names = [name for name in pattern.split("/") if name] or [""]
    _descend("/", first, names, found)
    return found


def _descend(directory: str, name: str, rest: list[str], found: PatternScan) -> None:
    """Follow one component of the pattern in one directory."""
    paths = [os.path.join(directory, one) for one in _named(directory, name)]
    if not rest:
        found.watched.setdefault(directory, set()).add(name)
        found.files.extend(hit for path in paths if (hit := _regular(path)))
        return
    below = [path for path in paths if os.path.isdir(path)]
    if _WILD.search(name) or not below:
        found.watched.setdefault(directory, set()).add(name)
    for path in below:
        _descend(path, rest[0], rest[1:], found)


def _named(directory: str, name: str) -> list[str]:
    if not _WILD.search(name):
        return [name] if os.path.lexists(os.path.join(directory, name)) else []
    try:
        return sorted(
            one for one in os.listdir(directory) if name_matches(name, one) and not one.endswith(PACKED)
        )
    except OSError:
        return []


def _regular(path: str) -> FoundFile | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return FoundFile(path, status) if stat.S_ISREG(status.st_mode) else None


def name_matches(pattern: str, name: str) -> bool:
    """Whether one component of a pattern matches this name; as in a shell, a leading dot must be written."""
    if name.startswith(".") and not pattern.startswith("."):
        return False
    return pattern == name or fnmatchcase(name, pattern)


def path_matches(pattern: str, path: str) -> bool:
    """Whether a pattern matches this path, whether it exists or not."""
    ours, theirs = ([one for one in text.split("/") if one] for text in (pattern, path))
    return len(ours) == len(theirs) and all(name_matches(*pair) for pair in zip(ours, theirs, strict=True))


_OF_DATES = "0123456789-_.T"
_YEAR = re.compile(r"[-._][0-9]{4}")
_NUMBER = re.compile(r"\.[0-9]{1,3}$")


def unrotated_paths(path: str) -> list[str]:
    """The paths of which this may be a rotated file.

    As `app.log.1`, `app.log-20260131`, `app-20260131.log` and `app.1.log` (logrotate's `extension`) of `app.log`.
    """
    directory, name = os.path.split(path)
    if name.endswith(PACKED):
        return []
    names = [name[:place] for place, char in enumerate(name) if place and char in "-._~"]
    stem, dot, ending = name.rpartition(".")
    turn = _YEAR.search(stem, max(1, len(stem.rstrip(_OF_DATES)))) or _NUMBER.search(stem, 1)
    if turn and ending and not ending[0].isdigit():
        names.append(f"{stem[: turn.start()]}{dot}{ending}")
    return [os.path.join(directory, one) for one in names]


def files_in(directory: str, wanted: Callable[[str], bool]) -> list[FoundFile]:
    """The regular files of a directory whose paths are wanted, the least recently written first."""
    try:
        paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    except OSError:
        return []
    hits = [hit for path in paths if wanted(path) and (hit := _regular(path))]
    return sorted(hits, key=lambda hit: hit.status.st_mtime_ns)


def rotated_files(path: str) -> list[FoundFile]:
    """The files that look like rotated ones of this path, the oldest first."""
    return files_in(os.path.dirname(path), lambda one: path in unrotated_paths(one))


def path_of_inode(path: str, inode: int) -> str | None:
    """The current path, in the same directory, of the file with this inode; None if it is not there."""
    directory = os.path.dirname(path)
    try:
        with os.scandir(directory) as entries:
            names = [entry.path for entry in entries if entry.inode() == inode]
    except OSError:
        return None
    hits = [hit for one in names if (hit := _regular(one))]
    return next((hit.path for hit in hits if hit.status.st_ino == inode), None)
