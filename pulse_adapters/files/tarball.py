"""Writes archives, and reads them back to verify them."""

import hashlib
import os
import stat
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from gzip import BadGzipFile, GzipFile
from typing import IO, NamedTuple

from pulse_adapters.files.in_use import OPEN
from pulse_adapters.files.safe_directory import SafeDirectory
from pulse_adapters.files.sessions import Session, SessionEntry, open_parent
from pulse_adapters.files.worker import Deadline

CHUNK = 1 << 20
LEVEL = 6


class SessionChanged(Exception):
    """A session has changed since it was read."""


class ArchiveUnreadable(Exception):
    """An archive that can't be read back as written."""


class ArchiveMember(NamedTuple):
    """An entry of an archive: its type, a file's SHA-256 and time, or a link's target."""

    kind: str
    sha256: str = ""
    mtime: str = ""
    target: str = ""


Manifest = Mapping[str, ArchiveMember]
"""By the path of the piece."""


def write_archive(
    file: IO[bytes], root: SafeDirectory, sessions: Iterable[Session], deadline: Deadline
) -> None:
    """Write the sessions as a compressed tar, and sync it to the disk.

    Raises SessionChanged with the name of a session that can't be read, or has changed.
    """
    with (
        GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for session in sessions:
            for piece in session.pieces:
                try:
                    with open_piece(root, piece) if stat.S_ISREG(piece.mode) else nullcontext() as source:
                        tar.addfile(_describe(piece), _DeadlineReader(source, deadline) if source else None)
                except SessionChanged as changed:
                    raise SessionChanged(session.name) from changed
    file.flush()
    os.fsync(file.fileno())


def open_piece(root: SafeDirectory, piece: SessionEntry) -> IO[bytes]:
    """Open the file of this entry; raises SessionChanged if it was replaced, has changed, or can't be read."""
    try:
        with open_parent(root, piece.path) as (parent, name):
            file = os.fdopen(os.open(name, OPEN, dir_fd=parent), "rb", buffering=0)
    except OSError as error:
        raise SessionChanged from error
    if not piece.is_still(os.fstat(file.fileno())):
        file.close()
        raise SessionChanged
    return file


class _DeadlineReader:
    """A file whose reads check the deadline; raises SessionChanged if it can't be read, or is shorter than it was."""

    def __init__(self, file: IO[bytes], deadline: Deadline) -> None:
        self._file, self._deadline = file, deadline

    def read(self, size: int = -1, /) -> bytes:
        self._deadline.check()
        try:
            data = self._file.read(size)
        except OSError as error:
            raise SessionChanged from error
        if not data and size:
            raise SessionChanged
        return data


def _describe(piece: SessionEntry) -> tarfile.TarInfo:
    info = tarfile.TarInfo(piece.path)
    info.mode = stat.S_IMODE(piece.mode)
    info.uid, info.gid, info.mtime = piece.uid, piece.gid, piece.mtime_ns // 10**9
    info.pax_headers = {"mtime": _time(piece)}  # as text: a float is too coarse
    if stat.S_ISDIR(piece.mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(piece.mode):
        info.type, info.linkname = tarfile.SYMTYPE, piece.target
    else:
        info.size = piece.size
    return info


def _time(piece: SessionEntry) -> str:
    return f"{piece.mtime_ns // 10**9}.{piece.mtime_ns % 10**9:09}"


def read_back(file: IO[bytes], deadline: Deadline) -> Manifest:
    """The entries of an archive, read from the disk to its end; raises ArchiveUnreadable."""
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        with GzipFile(fileobj=file, mode="rb") as packed:
            with tarfile.open(fileobj=packed, mode="r|", bufsize=CHUNK) as tar:
                manifest = {info.name: _member(tar, info, deadline) for info in tar}
            while packed.read(CHUNK):  # to the checksum at the end
                pass
    except (tarfile.TarError, BadGzipFile, EOFError, zlib.error) as error:
        raise ArchiveUnreadable(f"{type(error).__name__}: {error}") from error
    return manifest


def _member(tar: tarfile.TarFile, info: tarfile.TarInfo, deadline: Deadline) -> ArchiveMember:
    if info.isdir():
        return ArchiveMember("directory")
    if info.issym():
        return ArchiveMember("link", target=info.linkname)
    if not info.isreg() or (file := tar.extractfile(info)) is None:
        raise ArchiveUnreadable(f"{info.name!r} is no file, directory or link")
    with file:
        return ArchiveMember("file", digest(file, deadline), info.pax_headers.get("mtime", ""))


def digest(file: IO[bytes], deadline: Deadline) -> str:
    """SHA-256 of the whole file, in hex."""
    whole = hashlib.sha256()
    while chunk := file.read(CHUNK):
        deadline.check()
        whole.update(chunk)
    return whole.hexdigest()


def archive_holds(manifest: Manifest, root: SafeDirectory, session: Session, deadline: Deadline) -> bool:
    """Whether an archive holds everything that is left of a session, byte for byte."""
    return all(_is_same(manifest.get(piece.path), root, piece, deadline) for piece in session.pieces)


def _is_same(
    member: ArchiveMember | None, root: SafeDirectory, piece: SessionEntry, deadline: Deadline
) -> bool:
    if stat.S_ISDIR(piece.mode):
        return member == ArchiveMember("directory")
    if stat.S_ISLNK(piece.mode):
        return member == ArchiveMember("link", target=piece.target)
    try:
        with open_piece(root, piece) as file:
            return member == ArchiveMember("file", digest(file, deadline), _time(piece))
    except (SessionChanged, OSError):
        return False
