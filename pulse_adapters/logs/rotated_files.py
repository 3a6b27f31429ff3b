"""The rotated files of one path, read in order: the older file to its end, then its successor."""

import time
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulse_adapters.logs.file_discovery import FoundFile, path_of_inode, rotated_files
from pulse_adapters.logs.open_file import (
    FileMark,
    FileRewritten,
    FollowedFile,
    Unreadable,
    mark_from_json,
    open_regular_file,
    resume_file,
)

OLD = 3
"""Files of one path that are followed after they were rotated away: who wrote them may not have noticed yet."""
PAST = 8
MOST_STAMPS = 64
"""Rotated files of one path that a position knows; where there are more, the clock decides which of them are new."""
LINGER = 1.0
"""Seconds that a deleted file is held after it was last written; it keeps its room on the disk meanwhile."""

_LONGEST = 300

Identity = tuple[int, int]


def subject_name(text: str) -> str:
    """A path or unit as the subject of events: printable, and no longer than a key may be."""
    clean = text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
    return clean if len(clean) <= _LONGEST else f"…{clean[1 - _LONGEST :]}"


def stamp(hit: FoundFile) -> int:
    """Size and change time of a file as one number, which a renamed or copied file keeps and a written one does not.

    Times are only told apart, never put in order: the clock may have been set meanwhile.
    """
    return crc32(f"{hit.status.st_size} {hit.status.st_mtime_ns}".encode())


class RotatedFiles:
    """The files of one path, oldest first. rules: the numbers of the settings that search its lines.

    past: marks of files that are not open but may appear again; total: grows with everything that is read, over all
    restarts, so that the later of two positions is known; looked: when its rotated files were last searched for, UTC
    nanoseconds; rotated: the stamps of those that were found then and not followed, None if nobody knows.
    forget: called when a file is closed; has_more: whether there is more to read though the last read had no line.
    """

    def __init__(self, path: str, rules: Sequence[int], forget: Callable[[FollowedFile], None]) -> None:
        self.path, self.name, self.rules, self.forget = path, subject_name(path), tuple(rules), forget
        self.files: list[FollowedFile] = []
        self.past: list[FileMark] = []
        self.total = time.time_ns()  # no read is so quick: whoever begins anew later begins with more
        self.looked = 0
        self.rotated: tuple[int, ...] | None = None
        self.known = self.has_more = False
        self.seen = time.monotonic()
        self._taken: FollowedFile | None = None

    def place(self) -> dict[str, Any]:
        """The reader's position, as JSON."""
        marks = (*self.past[-PAST:], *(followed.mark() for followed in self.files))
        few = None if self.rotated is None or len(self.rotated) > MOST_STAMPS else list(self.rotated)
        files = [mark.as_json() for mark in marks]
        return {"total": self.total, "looked": self.looked, "rotated": few, "files": files}

    def recover(self, place: Mapping[str, Any]) -> None:
        """Resume at a stored position: find its files again, wherever they are now."""
        try:
            total, looked = int(place["total"]), int(place["looked"])
            marks = [mark_from_json(one) for one in place["files"]]
            rotated = None if place.get("rotated") is None else tuple(map(int, place["rotated"]))
        except (KeyError, TypeError, ValueError):
            return  # of another version: as if there were none
        self.total, self.looked, self.rotated, self.known = total, looked, rotated, True
        for mark in marks:
            # At its current path, or in a copy.
            path = path_of_inode(self.path, mark.inode)
            if followed := (path and resume_file(path, mark)) or self.copy_of(mark):
                self.add(followed)
            elif mark.offset:
                self.past.append(mark)

    def copy_of(self, mark: FileMark, *, new: bool = False) -> FollowedFile | None:
        """Open the rotated file with the mark's content, at its offset; None if there is none. new: a new one alone."""
        ours = {followed.identity for followed in self.files}
        hits = [hit for hit in rotated_files(self.path) if mark.offset and hit.identity not in ours]
        hits = [hit for hit in hits if not new or self.is_new(hit)]
        copies = (resume_file(hit.path, mark) for hit in reversed(hits))
        return next((copy for copy in copies if copy), None)

    def add(self, followed: FollowedFile, before: FollowedFile | None = None) -> None:
        """Add a file, as the newest unless it comes before another one."""
        self.files.insert(self.files.index(before) if before else len(self.files), followed)
        self.past = [mark for mark in self.past if mark.identity != followed.identity]
        self.known = True
        self.total += 1

    def is_new(self, hit: FoundFile) -> bool:
        """Whether a rotated file is none of those that were there when they were last searched for, or was written since."""
        if self.rotated is None:
            return hit.status.st_mtime_ns >= self.looked
        return stamp(hit) not in self.rotated

    def consider(self, hit: FoundFile) -> bool:
        """Follow a rotated file that is new since the last search, unless it is a copy of a known one.

        False if that is undecided, since it only repeats a followed file so far.
        """
        followed = open_regular_file(hit.path)
        if followed is None:
            return True
        try:
            mark = next((mark for mark in self.past if mark.offset and followed.resume(mark)), None)
        except OSError:
            followed.close()
            return True
        repeated = mark is None and any(map(followed.is_copy, self.files))
        if repeated or (mark and not followed.unread()):
            followed.close()
        else:
            self.add(followed, before=self.files[-1] if self.files else None)
        return not repeated

    def add_history(self, hit: FoundFile) -> None:
        """Follow a rotated file from its end, for what may still be written into it."""
        if followed := open_regular_file(hit.path):
            with suppress(OSError):  # then it is read from its beginning, which says what is wrong with it
                followed.to_the_end()
            self.add(followed, before=self.files[-1] if self.files else None)

    def take(self, now: float, visible: Callable[[FollowedFile], bool]) -> bytes:
        """Read the next lines, of the oldest file that has any; empty if all are read to their end.

        visible: whether a file's current path matches a pattern. Raises Unreadable for a file that it drops.
        """
        self.has_more = False
        for followed in tuple(self.files):
            self._taken = followed
            try:
                block = followed.read()
                if not block and followed.is_in_long_line():
                    self.has_more = True
                    return b""
                is_over = not block and self._is_over(followed, now, visible)
                is_deleted = is_over and followed.is_deleted()
            except OSError as error:
                if followed.offset:  # so that no line comes twice, once it can be read
                    self.past = [*self.past, followed.mark()][-PAST:]
                self._drop(followed)
                place = path_of_inode(self.path, followed.identity[1]) or self.path
                raise Unreadable(place, followed.identity, error) from error
            except FileRewritten:
                # After a truncation the rest is read from the copy that was made before it, then the new beginning.
                if copy := self.copy_of(followed.mark()):
                    copy.copy = True
                    self.add(copy, before=followed)
                followed.stand_at(0)
                self.total += 1
                return self.take(now, visible)
            if is_over:
                # With `renamecopy` of logrotate: else the copy would pass for news, since nobody knows its original.
                if is_deleted and (copy := self.copy_of(followed.mark(), new=True)):
                    copy.copy = True
                    self.add(copy, before=followed)
                    self._drop(followed)
                    return self.take(now, visible)
                block = followed.last_words()
                if not is_deleted:  # the number of a deleted one is soon another file's
                    self.past = [*self.past, followed.mark()][-PAST:]
                self._drop(followed)
            if block:
                self.total += len(block)
                return block
        return b""

    def give_back(self, block: bytes, used: int) -> None:
        """Have what comes after so many bytes of the block that was taken last be taken again."""
        if self._taken and used < len(block):
            self._taken.give_back(block, used)
            self.total -= len(block) - used

    def _drop(self, followed: FollowedFile) -> None:
        self.files.remove(followed)
        self.total += 1
        self.forget(followed)
        followed.close()

    def _is_over(self, followed: FollowedFile, now: float, visible: Callable[[FollowedFile], bool]) -> bool:
        """Whether a file that is read to its end is complete."""
        if followed.copy:
            return True
        if followed.is_deleted():
            return now - followed.active >= LINGER
        old = [one for one in self.files[:-1] if not visible(one)]
        return len(old) > OLD and followed is old[0]
