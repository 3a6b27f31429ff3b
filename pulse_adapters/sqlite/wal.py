"""Looks at a write-ahead log before SQLite does: SQLite takes a bad frame for the end, and says nothing.

Format: sqlite.org/fileformat2.html, section 4; the -shm header: sqlite.org/walformat.html.
"""

import os
import struct
import sys
from array import array
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.database_files import files_of
from pulse_core.model.errors import Damaged, LogUnavailable

HEADER = 32
FRAME = 24
_SIZES = frozenset(1 << bits for bits in range(9, 17))
_PAGE = 4096
_BIG = {0x377F0682: False, 0x377F0683: True}
_MASK = 0xFFFFFFFF
REMEDY = (
    "; restore it from a backup, or go on without the lost rows: `upulse daemon start --accept-damage` keeps a copy in"
    " damaged/ first"
)


class WalFile:
    """The bytes of a log, read when they are asked for: where they were mapped, the kernel would end whoever reads what a
    disk that fails does not give, or what somebody has cut away meanwhile. That reads as zeros."""

    def __init__(self, file: int) -> None:
        self._file, self._size = file, os.fstat(file).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Raises OSError."""
        start, end, _ = part.indices(self._size)
        return os.pread(self._file, end - start, start).ljust(end - start, b"\0")


Buffer = bytes | WalFile


class Frame(NamedTuple):
    """One frame's header: the page it holds, the database's size if it ends a transaction, salts, checksum."""

    page: int
    commit: int
    salt: bytes
    sums: tuple[int, int]


class WalHeader(NamedTuple):
    """What the first bytes say of all frames: the page's size, the salt, the byte order of the sums, their beginning."""

    size: int
    salt: bytes
    big: bool
    sums: tuple[int, int]


class WalState(NamedTuple):
    """A log that may be opened: frames of whole transactions, and words about a torn end if there is one."""

    committed: int = 0
    torn: str = ""


class Index(NamedTuple):
    """What the -shm of a killed writer remembers: how many frames were acknowledged, and how many are moved."""

    frames: int
    moved: int
    salt: bytes


def scan(path: Path, *, rebooted: bool = False) -> WalState:
    """Check the log beside the database `path`; raises Damaged where rows that were on disk are gone, LogUnavailable where
    it can't be read.

    rebooted: the machine was restarted since the last writer, so a last transaction that is torn in its
    middle is a power cut's doing and was never acknowledged.
    """
    _, wal, shm = files_of(path)
    index = None if rebooted else read_index(shm)
    if not wal.exists() or wal.stat().st_size < HEADER:
        if index and index.frames > index.moved:
            raise _damaged(
                path, f"the log {wal.name} is gone, with {index.frames - index.moved} frames in it"
            )
        return WalState()
    try:
        with wal.open("rb") as file:
            return examine(WalFile(file.fileno()), path, rebooted=rebooted, index=index)
    except OSError as error:
        raise LogUnavailable(
            f"{wal} can't be read ({error.strerror}): look at the disk, then try again"
        ) from error


def examine(wal: Buffer, path: Path, *, rebooted: bool = False, index: Index | None = None) -> WalState:
    """The verdict on the bytes of a log; `path` is only for the words."""
    if not any(wal[:HEADER]):
        if index and index.frames > index.moved:
            raise _damaged(path, f"the -wal was emptied, with {index.frames - index.moved} frames in it")
        return WalState(torn="its header was never written")
    header = header_of(wal[:HEADER])
    if header is None:
        raise _damaged(path, "the header of its -wal file is altered, all frames in it are in doubt")
    size, salt = header.size, header.salt
    committed, bad = _walk(wal, header)
    if index and index.salt == salt and index.frames > committed:
        raise _damaged(path, _where(bad, size) + f", and {index.frames} frames were acknowledged")
    # A bad frame with a commit after it is damage, unless it is inside the last transaction of a power cut.
    same = [(number, frame) for number, frame in _headers(wal, size, bad) if frame.salt == salt]
    commits = [number for number, frame in same if frame.commit]
    later = [number for number in commits if number > bad]
    if later and not (rebooted and len(later) == 1 and same[-1][0] == later[0] and bad not in commits):
        raise _damaged(path, _where(bad, size) + f", and transactions follow up to frame {later[-1]}")
    return WalState(committed, f"frame {bad} ends a torn transaction" if commits else "")


def header_of(content: bytes) -> WalHeader | None:
    """The header of a log, or None if it is not what was written."""
    magic, _, size, _, salt, *sums = struct.unpack(">IIII8sII", content.ljust(HEADER, b"\0"))
    if magic not in _BIG or _sums(content[:24], _BIG[magic]) != tuple(sums):
        return None
    return WalHeader(size, salt, _BIG[magic], (sums[0], sums[1]))


def last_rowid(wal: Path) -> int:
    """The largest row number on any page in the log, whether or not the database that it belongs to can be read.

    A leaf of a table (format: section 1.6) has its cells in the order of their row numbers.
    """
    with wal.open("rb") as file:
        content = WalFile(file.fileno())
        said, last = int.from_bytes(content[8:12], "big"), 0
        size = said if said in _SIZES else _PAGE  # the header may be altered, too
        for number, frame in _headers(content, size, 1):
            start = offset(number, size) + FRAME
            page = content[start : start + size]
            cells = int.from_bytes(page[3:5], "big")
            if page[0] == 0x0D and frame.page > 1 and 0 < cells < size // 4:
                place = int.from_bytes(page[6 + 2 * cells : 8 + 2 * cells], "big")
                _, place = _varint(page, place)
                last = max(last, _varint(page, place)[0])
    return last


def _varint(page: bytes, place: int) -> tuple[int, int]:
    """SQLite's integer of one to nine bytes, and the place after it."""
    value = 0
    for byte in page[place : place + 8]:
        value, place = value << 7 | byte & 0x7F, place + 1
        if byte < 0x80:
            return value, place
    return value, place + 1


def _walk(wal: Buffer, header: WalHeader) -> tuple[int, int]:
    """The number of the last good commit frame, and of the first frame that is not good."""
    committed, number, sums = 0, 0, header.sums
    for number, frame in _headers(wal, header.size, 1):
        start = offset(number, header.size)
        after = frame_sums(wal[start : start + FRAME + header.size], header, sums)
        if after is None:
            return committed, number
        sums = after
        if frame.commit:
            committed = number
    return committed, number + 1


def frame_sums(frame: bytes, header: WalHeader, sums: tuple[int, int]) -> tuple[int, int] | None:
    """The sums after this frame, given those before it; None if it is not the frame that was written there."""
    if len(frame) < FRAME + header.size or frame[8:16] != header.salt or not any(frame[:4]):
        return None
    sums = _sums(frame[FRAME:], header.big, *_sums(frame[:8], header.big, *sums))
    return sums if sums == struct.unpack(">II", frame[16:FRAME]) else None


def _headers(wal: Buffer, size: int, first: int) -> Iterator[tuple[int, Frame]]:
    """The headers of all whole frames from `first` on, with their numbers."""
    count = (len(wal) - HEADER) // (FRAME + size)
    for number in range(first, count + 1):
        start = offset(number, size)
        page, commit, salt, one, two = struct.unpack(">II8sII", wal[start : start + FRAME])
        yield number, Frame(page, commit, salt, (one, two))


def _sums(content: bytes, big: bool, one: int = 0, two: int = 0) -> tuple[int, int]:
    """SQLite's running checksum: Fibonacci-weighted sums over pairs of 32-bit words."""
    words = array("I", content)
    if big != (sys.byteorder == "big"):
        words.byteswap()
    pairs = iter(words)
    for left, right in zip(pairs, pairs, strict=True):
        one = (one + left + two) & _MASK
        two = (two + right + one) & _MASK
    return one, two


def read_index(shm: Path) -> Index | None:
    """What the -shm file says, or None if there is none or it is in the middle of a change."""
    try:
        with shm.open("rb") as file:
            return parse_index(file.read(136))
    except FileNotFoundError:
        return None


@lru_cache(1)  # the daemon reads the same again and again while nothing is recorded
def parse_index(content: bytes) -> Index | None:
    """What the first 136 bytes of a -shm say, or None if they are in the middle of a change."""
    if len(content) < 136 or content[:48] != content[48:96] or not content[12]:
        return None
    frames, one, two = struct.unpack("=16xI20xII", content[:48])
    if _sums(content[:40], sys.byteorder == "big") != (one, two):
        return None
    return Index(frames, struct.unpack("=I", content[96:100])[0], content[32:40])


def offset(number: int, size: int) -> int:
    """Where this frame begins, of pages of this size."""
    return HEADER + (number - 1) * (FRAME + size)


def _where(number: int, size: int) -> str:
    return f"frame {number} of its -wal file (byte {offset(number, size)}) is altered or missing"


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(f"{path}: {what}{REMEDY}")
