"""The followed log files: finds them, watches them, and reads them in turn."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pulse_adapters.logs.file_discovery import (
    FoundFile,
    PatternScan,
    files_in,
    path_matches,
    scan,
    unrotated_paths,
)
from pulse_adapters.logs.open_file import FollowedFile, Unreadable, open_regular_file, reason_unread
from pulse_adapters.logs.rotated_files import Identity, RotatedFiles, stamp, subject_name
from pulse_adapters.logs.watches import LogWatches, Tell

MOST = 1_000
"""Files that are followed at the same time."""
REMEMBERED, MOST_EMPTY = 3_600.0, 100
"""Seconds for which a path is remembered that has no file any more, and how many of them are."""
UNREADABLE = 300.0
"""Seconds for which a file that can't be read is left alone."""
COARSE = 0.02
"""Seconds by which the times of files may be behind the clock."""


class DirectoryState(NamedTuple):
    """A directory as of its last scan: its change time, when that was first seen, and stamps of its unfollowed files.

    settled: whether that was long enough ago for whatever changes it later to give it another change time.
    """

    changed: int
    seen: float
    stamps: frozenset[int]
    settled: bool


class FollowedFiles:
    """Follows the files of these patterns, each with the number of its rule. known: patterns that were followed before.

    dirty: trails (files of one path) that may have new data; in_doubt: whether there is a file that may be a copy of a
    followed one. tell: called with (source, message) for problems that the user should see.
    """

    def __init__(
        self, patterns: Mapping[int, str], known: Sequence[str], places: Mapping[str, Any], tell: Tell
    ) -> None:
        self.patterns, self.tell = patterns, tell
        self.trails: dict[str, RotatedFiles] = {}
        self.dirty: dict[str, RotatedFiles] = {}
        self.in_doubt = False
        self.watches = LogWatches(tell)
        self._directories: dict[str, DirectoryState] = {}
        self._known_patterns = set(known)
        self._totals: dict[str, int] = {}
        self._since = max((last_looked_at(place) for place in places.values()), default=time.time_ns())
        self._visible: set[Identity] = set()
        self._followed: set[Identity] = set()
        self._unreadable: dict[Identity, float] = {}
        for name, place in places.items():
            if name.startswith("/") and self._rules(name):
                self._trail(name).recover(place)
                self._totals[name] = self.trails[name].total
        self.scan()

    def _rules(self, path: str) -> Sequence[int]:
        return [number for number, pattern in self.patterns.items() if path_matches(pattern, path)]

    def _trail(self, path: str) -> RotatedFiles:
        trail = self.trails.get(subject_name(path))
        if trail is None:
            trail = RotatedFiles(path, self._rules(path), self.watches.forget)
            trail.total = max(trail.total, self._totals.pop(trail.name, 0) + 1)
            trail.looked = self._since
            self.trails[trail.name] = trail
        self.dirty[trail.name] = trail
        return trail

    # What is there

    def scan(self) -> None:
        """Scan for files: new ones are followed, and removed ones are read to their end."""
        self.in_doubt = False
        self.watches.polled = False
        found = self._scan_all()
        if self.watches.directories(found.values()):
            found = self._scan_all()  # what came before it was watched, and after it was looked at
        self._visible = {hit.identity for one in found.values() for hit in one.files}
        self._followed = {one.identity for trail in self.trails.values() for one in trail.files}
        hits = [(hit, pattern) for pattern, one in found.items() for hit in one.files]
        fresh = {name for hit, pattern in hits if (name := self._follow_new(hit, pattern))}
        self._known_patterns.update(found)
        self._follow_unfollowed(fresh)
        self._drop_empty()
        self.look()

    def _scan_all(self) -> dict[str, PatternScan]:
        return {pattern: scan(pattern) for pattern in dict.fromkeys(self.patterns.values())}

    def _follow_new(self, hit: FoundFile, pattern: str) -> str:
        """Follow a file, if it is not followed yet; returns the name of its trail if reading begins at its end."""
        if hit.identity in self._followed or time.monotonic() < self._unreadable.get(hit.identity, 0.0):
            return ""
        if len(self._followed) >= MOST:
            self.tell(pattern, f"more than {MOST} files match; the others are not followed")
            return ""
        followed = open_regular_file(hit.path)
        if followed is None:
            if why := reason_unread(hit.path):
                self.tell(hit.path, why)
            return ""
        paths = map(subject_name, unrotated_paths(hit.path))
        origins = [origin for path in paths if path in self.trails for origin in self.trails[path].files]
        if any(map(followed.is_copy, origins)):  # it may be a copy, made before that is truncated
            self._doubt(hit.path)
            followed.close()
            return ""
        trail, is_fresh = self._trail(hit.path), pattern not in self._known_patterns
        is_history = False
        with suppress(OSError):  # then it is read from its beginning, which says what is wrong with it
            if is_history := not self._remembered(followed) and is_fresh and not trail.known:
                followed.to_the_end()  # otherwise it is read from its stored position, or from its beginning
        trail.add(followed)
        self._followed.add(followed.identity)
        return trail.name if is_history else ""

    def _remembered(self, followed: FollowedFile) -> bool:
        """Whether it was followed before, under any name; then reading resumes, under one name only.

        A device may have another number at each boot, as those of btrfs, overlay and NFS: it is known by inode and content.
        """
        for trail in self.trails.values():
            for mark in trail.past:
                if mark.inode == followed.identity[1] and followed.resume(mark):
                    trail.past.remove(mark)
                    return True
        return False

    def _doubt(self, path: str) -> None:
        self.in_doubt = True
        self.watches.doubt(path)

    def _follow_unfollowed(self, fresh: Collection[str]) -> None:
        """Add to the trails their files that were rotated away before they could be followed.

        Those created since the last scan of their directory are read, the others are history, as are the older files
        of fresh trails. A file that is followed, or will be under its own name, is none of them.
        """
        paths = {trail.path: trail for trail in self.trails.values()}
        homes: dict[str, list[RotatedFiles]] = {}
        for path, trail in paths.items():
            homes.setdefault(os.path.dirname(path), []).append(trail)
        for home, trails in homes.items():
            now, before, changed = time.monotonic(), self._directories.get(home), _change_time(home)
            if before is None or before.changed != changed or not before.settled:
                known = self._followed | self._visible
                found = files_in(
                    home, lambda path: path not in paths and any(map(paths.get, unrotated_paths(path)))
                )
                hits = [hit for hit in found if hit.identity not in known]
                if doubtful := [hit for hit in hits if not _add_to_trails(hit, paths, before, fresh)]:
                    for hit in doubtful:
                        self._doubt(hit.path)
                    continue
                seen = before.seen if before and before.changed == changed else now
                stamps, settled = frozenset(map(stamp, hits)), now - seen >= COARSE
                self._directories[home] = DirectoryState(changed, seen, stamps, settled)
                rotated: dict[str, list[int]] = {}
                for hit in hits:
                    for path in unrotated_paths(hit.path):
                        rotated.setdefault(path, []).append(stamp(hit))
                for trail in trails:
                    trail.rotated = tuple(rotated.get(trail.path, ()))
            for trail in trails:
                trail.looked = time.time_ns() - int(COARSE * 1e9)
        self._directories = {home: state for home, state in self._directories.items() if home in homes}

    def _drop_empty(self) -> None:
        """Forget paths that have no file any more; after a delay, since a rotation may put another one in their place."""
        now = time.monotonic()
        empty = [trail for trail in self.trails.values() if not trail.files]
        for trail in self.trails.values():
            trail.seen = now if trail.files else trail.seen
        for place, trail in enumerate(reversed(empty)):
            if now - trail.seen > REMEMBERED or place >= MOST_EMPTY:
                del self.trails[trail.name]
                self.dirty.pop(trail.name, None)
                self._totals[trail.name] = trail.total  # should it come back when the clock was set back
                if len(self._totals) > 2 * MOST:
                    del self._totals[next(iter(self._totals))]

    # What they say

    def process_events(self) -> bool:
        """Process the inotify events; returns whether a scan is due."""
        return self.watches.process_events(self.dirty, self._concerns)

    def _concerns(self, directory: str, name: str) -> bool:
        return any(subject_name(one) in self.trails for one in unrotated_paths(os.path.join(directory, name)))

    def look(self) -> None:
        """The safety net: find data to read without inotify events, and retry the missing watches."""
        for trail in self.trails.values():
            for followed in trail.files:
                self.watches.follow(followed, trail)
                try:
                    status = os.fstat(followed.file)
                except OSError:  # to read it says what is wrong with it
                    self.dirty[trail.name] = trail
                    continue
                if status.st_size != followed.offset or not status.st_nlink or followed.copy:
                    self.dirty[trail.name] = trail

    def take(self, trail: RotatedFiles, now: float) -> bytes:
        """Read the next whole lines of this trail; if there are none, it is no longer dirty."""
        try:
            block = trail.take(now, lambda followed: followed.identity in self._visible)
        except Unreadable as error:
            if len(self._unreadable) >= MOST:
                self._unreadable.clear()
            self._unreadable[error.identity] = time.monotonic() + UNREADABLE
            self.tell(error.path, f"it can't be read: {error}; that is tried again in {UNREADABLE:.0f} s")
            return b""
        if not block and not trail.has_more:
            self.dirty.pop(trail.name, None)
        return block

    def behind(self) -> int:
        """Bytes that are not read yet."""
        behind = 0
        for followed in (one for trail in self.trails.values() for one in trail.files):
            with suppress(OSError):  # nobody knows how long it is
                behind += followed.unread()
        return behind


def last_looked_at(place: Mapping[str, Any]) -> int:
    """When rotated files were last searched for, from a stored position."""
    when = place.get("looked", 0)
    return when if isinstance(when, int) else 0


def _add_to_trails(
    hit: FoundFile, paths: Mapping[str, RotatedFiles], before: DirectoryState | None, fresh: Collection[str]
) -> bool:
    """Add a new file to the trails to which it may belong; False if that is undecided yet.

    It is new if it was created or written since the last scan, by this reader or the one before it.
    """
    is_decided = True
    for trail in (paths[one] for one in unrotated_paths(hit.path) if one in paths):
        if trail.name in fresh:
            trail.add_history(hit)
        elif stamp(hit) not in before.stamps if before else trail.is_new(hit):
            is_decided = trail.consider(hit) and is_decided
    return is_decided


def _change_time(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0
