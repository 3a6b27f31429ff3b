"""One open log file: its identity, its read position, and its next whole lines."""

import errno
import os
import stat
import time
from binascii import crc32
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pulse_adapters.workers.followed_path import led_to
from pulse_adapters.workers.plain_file import open_plain

CHUNK = 256 * 1024
"""Most bytes that are read at once, and the longest line: of a longer one only its beginning is looked at."""
PASSES = 16
"""Reads of the rest of a line that is too long before others have their turn: it may be as long as its writer likes."""
PRINT = 1_024
"""Bytes at the beginning, and before the place reached, by which a file is recognised: inodes are used again."""


class FileRewritten(Exception):
    """The content already read is not in the file any more: it was truncated or rewritten."""


class Unreadable(Exception):
    """A followed file can't be read any more, and is not followed; its identity, and what the system says."""

    def __init__(self, path: str, identity: tuple[int, int], error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.path, self.identity = path, identity


class FileMark(NamedTuple):
    """A position in a file that can be found again: the file, the offset, checksums of its start and before the offset.

    cut: the offset is within a line that is too long.
    """

    device: int
    inode: int
    offset: int
    head: int
    tail: int
    cut: bool = False

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode

    def as_json(self) -> dict[str, Any]:
        """As JSON; `cut` only where it is."""
        return {name: value for name, value in self._asdict().items() if name != "cut" or value}


def mark_from_json(data: Mapping[str, Any]) -> FileMark:
    """A mark from JSON; raises TypeError for what is none."""
    values: dict[str, Any] = {**data, "cut": bool(data.get("cut"))}
    if not all(isinstance(value, int) for value in values.values()):
        raise TypeError(f"a mark holds numbers, not {data}")
    return FileMark(**values)


class FollowedFile:
    """An open file. watch: its inotify watch, None while it is polled.

    copy: a copy made before a truncation, read only as far as it goes now; active: when it was last read from
    (monotonic seconds).
    """

    def __init__(self, file: int, identity: tuple[int, int]) -> None:
        self.file, self.identity = file, identity
        self.offset = 0
        self.head = self.tail = self._before = b""
        self.cut = self.copy = False
        self.watch: int | None = None
        self.active = time.monotonic()

    def to_the_end(self) -> None:
        """Skip to the end of the last whole line."""
        size = os.fstat(self.file).st_size
        before = max(0, size - CHUNK)
        last = os.pread(self.file, size - before, before).rfind(b"\n")
        cut = last < 0 < before
        self.stand_at(size if cut else before + last + 1, cut)

    def resume(self, mark: FileMark) -> bool:
        """Continue at the mark, if it was made of this file; returns whether it was."""
        if is_fit := fits_mark(self.file, mark):
            self.stand_at(mark.offset, cut=mark.cut)
        return is_fit

    def stand_at(self, offset: int, cut: bool = False) -> None:
        """Read from this offset on; cut: it is within a line that is too long."""
        self.offset, self.cut = offset, cut
        self.head = os.pread(self.file, min(PRINT, offset), 0)
        self.tail = os.pread(self.file, min(PRINT, offset), offset - min(PRINT, offset))

    def mark(self) -> FileMark:
        """The place reached."""
        return FileMark(*self.identity, self.offset, crc32(self.head), crc32(self.tail), self.cut)

    def read(self) -> bytes:
        """The next whole lines, each with its newline; empty if there is none yet. Raises FileRewritten."""
        for _ in range(PASSES):
            if self.cut:
                self._skip_hole()
            raw = os.pread(self.file, len(self.tail) + CHUNK, self.offset - len(self.tail))
            if not raw.startswith(self.tail) or os.pread(self.file, len(self.head), 0) != self.head:
                raise FileRewritten
            begin = len(self.tail)
            if self.cut:  # behind the rest of an overlong line
                self.cut = b"\n" not in raw[begin:]
                begin = len(raw) if self.cut else raw.index(b"\n", begin) + 1
            end = raw.rfind(b"\n", begin) + 1
            if end:
                self._before = raw[max(0, begin - PRINT) : begin]
                self._move(raw, end)
                return raw[begin:end]
            if len(raw) - begin >= CHUNK:
                self._move(raw, len(raw))
                self.cut = True
                return raw[begin:] + b"\n"
            if begin == len(self.tail):
                return b""
            self._move(raw, begin)
        return b""

    def _skip_hole(self) -> None:
        """Go on where a file has data again: a hole has no newline, takes no room on the disk, and may be of any length."""
        end = os.fstat(self.file).st_size  # before it is asked: what is appended meanwhile comes after that
        try:
            end = os.lseek(self.file, self.offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # it has no more data
                return
        if end > self.offset + CHUNK:
            self.stand_at(end, cut=True)

    def is_in_long_line(self) -> bool:
        """Whether there is more of a line that is too long, of which nothing is told."""
        return self.cut and self.unread() > 0

    def give_back(self, block: bytes, used: int) -> None:
        """Have what comes after so many bytes of the block that was read last be read again; once for each block."""
        self.offset -= len(block) - used
        self.head = self.head[: self.offset]
        self.tail = (self._before + block[:used])[-PRINT:]

    def _move(self, raw: bytes, end: int) -> None:
        new = end - len(self.tail)
        if new <= 0:
            return
        if len(self.head) < PRINT:
            self.head = (self.head + raw[len(self.tail) : end])[:PRINT]
        self.tail = raw[max(0, end - PRINT) : end]
        self.offset += new
        self.active = time.monotonic()

    def last_words(self) -> bytes:
        """The text after the last newline of a file that is complete, as a line."""
        raw = b"" if self.cut else os.pread(self.file, CHUNK, self.offset)
        self._move(self.tail + raw, len(self.tail) + len(raw))
        return raw + b"\n" if raw else b""

    def unread(self) -> int:
        """Bytes that are not read yet."""
        return max(0, os.fstat(self.file).st_size - self.offset)

    def is_deleted(self) -> bool:
        """Whether it was deleted."""
        return os.fstat(self.file).st_nlink == 0

    def is_copy(self, origin: "FollowedFile") -> bool:
        """Whether its content so far is, or was when it was read, at the same offset in the other file.

        That holds for a copy, from its first byte on, made before the original is truncated.
        """
        mark = origin.mark()
        try:
            if mark.offset and fits_mark(self.file, mark):
                return True
            length = min(PRINT, size := os.fstat(self.file).st_size)
            return all(
                os.pread(self.file, length, one) == os.pread(origin.file, length, one)
                for one in (0, size - length)
            )
        except OSError:
            return False  # which of both can't be read shows when it is read

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)


class _LinkOfOther(OSError):
    """A link of another user leads to what that one may not read."""


def _open(path: str) -> tuple[int, os.stat_result]:
    """The regular file at this path, open, and its data.

    Raises OSError: _LinkOfOther, too, for by a link whoever may not read a file would have its lines recorded.
    """
    with led_to(path) as (there, of_others):
        file = open_plain(f"/proc/self/fd/{there}", follow=True)
    try:
        found = os.fstat(file)
        for user in of_others.keys() - {found.st_uid}:
            place = os.readlink(f"/proc/self/fd/{file}")
            if not (found.st_mode & stat.S_IROTH and _all_may_enter(os.path.dirname(place))):
                words = f"{of_others[user]!r}, a link of the user {user}, leads to {place}, which that one may not read"
                raise _LinkOfOther(errno.EACCES, f"{words}; if you mean it, name it itself in `path`")
    except OSError:
        os.close(file)
        raise
    return file, found


def _all_may_enter(folder: str) -> bool:
    """Whether every user may enter a folder, given without links, and all that it lies in."""
    above = os.path.dirname(folder)
    return bool(os.stat(folder).st_mode & stat.S_IXOTH) and (above == folder or _all_may_enter(above))


def reason_unread(path: str) -> str:
    """Why the file at this path may not be read, and what mends that; empty if that is not so."""
    try:
        os.close(_open(path)[0])
    except _LinkOfOther as error:
        return str(error.strerror)
    except PermissionError:
        return "it may not be read by the user Pulse runs as; give that user the right"
    except OSError:
        pass
    return ""


def open_regular_file(path: str) -> FollowedFile | None:
    """Open the regular file at this path, at its beginning; None if there is none that may be read."""
    try:
        file, status = _open(path)
    except OSError:
        return None
    return FollowedFile(file, (status.st_dev, status.st_ino))


def resume_file(path: str, mark: FileMark) -> FollowedFile | None:
    """Open the file at this path at the mark; None if it is not the file that the mark was made of."""
    followed = open_regular_file(path)
    with suppress(OSError):  # as if it were another one
        if followed is None or followed.resume(mark):
            return followed
    if followed:
        followed.close()
    return None


def fits_mark(file: int, mark: FileMark) -> bool:
    """Whether an open file has the mark's content at its beginning and before the mark's offset."""
    length = min(PRINT, mark.offset)
    if os.fstat(file).st_size < mark.offset:
        return False
    head, tail = os.pread(file, length, 0), os.pread(file, length, mark.offset - length)
    return crc32(head) == mark.head and crc32(tail) == mark.tail
