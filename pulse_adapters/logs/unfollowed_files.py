"""Rotated files that were not followed: those created since the last scan are read, the others are history."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from pulse_adapters.logs.file_discovery import FoundFile, files_in, unrotated_paths
from pulse_adapters.logs.rotated_files import Identity, RotatedFiles

COARSE = 20_000_000
"""Nanoseconds by which the times of files may be behind the clock."""


class DirectoryState(NamedTuple):
    """A directory as of its last scan: when that was (UTC nanoseconds), its change time, and its unfollowed files."""

    at: int
    changed: int
    identities: frozenset[Identity]


class UnfollowedFiles:
    """Scans the directories of trails, each when it has changed. doubt: called with a path that may be a copy."""

    def __init__(self, doubt: Callable[[str], None]) -> None:
        self.doubt = doubt
        self._looks: dict[str, DirectoryState] = {}

    def meet(
        self, trails: Iterable[RotatedFiles], known: Collection[Identity], fresh: Collection[str]
    ) -> None:
        """Add to the trails their files that were rotated away before they could be followed.

        known: files that are followed, or will be under their own names; fresh: trails whose older files are history.
        """
        paths = {trail.path: trail for trail in trails}
        homes: dict[str, list[RotatedFiles]] = {}
        for path, trail in paths.items():
            homes.setdefault(os.path.dirname(path), []).append(trail)
        for home, inhabitants in homes.items():
            now, before, changed = time.time_ns(), self._looks.get(home), _change_time(home)
            if before is None or before.changed != changed or before.at - changed < COARSE:
                hits = [
                    hit for hit in files_in(home, partial(is_unfollowed, paths)) if hit.identity not in known
                ]
                if doubtful := [hit for hit in hits if not _follow_in_trails(hit, paths, before, fresh)]:
                    for hit in doubtful:
                        self.doubt(hit.path)
                    continue
                self._looks[home] = DirectoryState(now, changed, frozenset(hit.identity for hit in hits))
            for trail in inhabitants:
                trail.looked = now - COARSE
        self._looks = {home: look for home, look in self._looks.items() if home in homes}


def is_unfollowed(paths: Mapping[str, RotatedFiles], path: str) -> bool:
    """Whether this looks like a rotated file of one of these paths, and is not followed by its own name."""
    return path not in paths and any(one in paths for one in unrotated_paths(path))


def _follow_in_trails(
    hit: FoundFile, paths: Mapping[str, RotatedFiles], before: DirectoryState | None, fresh: Collection[str]
) -> bool:
    """Add a new file to the trails to which it may belong; False if that is undecided yet."""
    told = True
    for trail in (paths[one] for one in unrotated_paths(hit.path) if one in paths):
        if trail.name in fresh:
            trail.add_history(hit)
        elif _is_new(hit, trail, before):
            told = trail.consider(hit) and told
    return told


def _is_new(hit: FoundFile, trail: RotatedFiles, before: DirectoryState | None) -> bool:
    """Whether it was created or written since the last scan, by this reader or the one before it."""
    written = hit.status.st_mtime_ns
    if before is None:
        return written >= trail.looked
    return hit.identity not in before.identities or written >= before.at - COARSE


def _change_time(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0
