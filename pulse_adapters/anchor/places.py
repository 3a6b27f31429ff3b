"""A line in a file or in the journal: to add one, and to read all."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from tempfile import TemporaryFile

from pulse_adapters.workers.plain_file import NotPlain, open_plain
from pulse_core.model.errors import PulseError

JOURNAL = Path("/run/systemd/journal/socket")
NAME = "pulse-anchor"
JOURNAL_PLACE = "journal"
"""How the journal is named where others are named by their paths."""
PATIENCE = 60.0
_LONGEST = 64 * 1024
_LOOKED = 2**20
"""Bytes of a file in which the line before is looked for, as one that several homes share."""
_MOST = 2**30
"""Bytes of a place that are read at most: an anchor each minute for ten years is less."""


def add_to_file(path: Path, line: str, before: str = "") -> bool:
    """Add the line at the end of the file, on disk when this returns; an append-only file (`chattr +a`) will do.

    before: the line that was added last, if any. Whether the line is the first in it, or the one before is gone from it:
    somebody put another file there. A first one that fails is taken back where the file allows it, so that the next is
    the first. Behind one that was broken off, as by a full disk or a power cut, it begins a line of its own.
    """
    handle = open_plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        is_first = not (size := os.fstat(handle).st_size)
        near = os.pread(handle, _LOOKED, max(size - _LOOKED, 0)) if before else b""
        is_gone = bool(before) and len(near) < _LOOKED and f"{before}\n".encode() not in near
        begin = "" if is_first or os.pread(handle, 1, size - 1) == b"\n" else "\n"
        whole, written = f"{begin}{line}\n".encode(), 0
        try:
            if (written := os.write(handle, whole)) < len(whole):
                raise PulseError("only a part of the line was written: is there room?")
            os.fsync(handle)
        except (PulseError, OSError):
            with suppress(OSError):
                if is_first and os.fstat(handle).st_size == written:  # else another home has added a line
                    os.ftruncate(handle, 0)
            raise
        return is_first or is_gone
    finally:
        os.close(handle)


def reach_file(path: Callable[[], Path]) -> None:
    """Open the file as who adds a line, and add none: a server that is gone does not answer that."""
    with suppress(OSError):
        os.close(open_plain(path(), os.O_WRONLY | os.O_APPEND))


def lines_of_file(path: Path) -> Iterator[str]:
    """The file's lines; raises PulseError if it can't be read, or is larger than any anchor."""
    try:
        with open(open_plain(path), errors="replace") as file:
            if os.fstat(file.fileno()).st_size > _MOST:
                raise PulseError(f"{path} has more than {_MOST // 2**20} MiB, which no anchor has")
            while line := file.readline(_LONGEST):  # what is longer is no anchor, nor are its pieces
                yield line
    except (FileNotFoundError, NotPlain) as error:
        raise PulseError(f"{path} is not there, or is no file") from error
    except OSError as error:
        raise PulseError(f"{path} can't be read: {error.strerror}") from error


def add_to_journal(line: str, address: Path = JOURNAL) -> None:
    """Add the line to the machine's journal."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        speaker.setblocking(False)  # a journal that is stopped must not stop us
        fields = {"MESSAGE": line, "SYSLOG_IDENTIFIER": NAME, "PRIORITY": "6"}
        speaker.sendto(
            "".join(f"{key}={value}\n" for key, value in fields.items()).encode(), os.fspath(address)
        )


def journal_query(uids: Collection[int]) -> Sequence[str]:
    """What journalctl is asked for the lines that `add_to_journal` added as one of these users, as journald knows."""
    fields = (f"SYSLOG_IDENTIFIER={NAME}", "_TRANSPORT=journal", *(f"_UID={uid}" for uid in sorted(uids)))
    return "--quiet", "--no-pager", "--output=cat", *fields


def lines_of_journal(
    uids: Collection[int], program: str = "journalctl", patience: float = PATIENCE
) -> Iterator[str]:
    """The lines that `add_to_journal` added, as far as this user may read them; raises PulseError if none can be.

    uids: the users whose lines count: anybody may write there in our name.
    patience: seconds that are waited in all.
    """
    argv = [program, *journal_query(uids)]
    with TemporaryFile() as said:
        try:
            reader = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        except FileNotFoundError as error:
            raise PulseError("the journal can't be read: there is no journalctl") from error
        with reader:
            try:
                assert reader.stdout
                yield from _lines_from(reader.stdout.fileno(), patience)
            except BaseException:
                reader.kill()
                raise
        if reader.returncode:
            said.seek(0)
            words = " ".join(said.read(_LONGEST).decode(errors="replace").split())
            raise PulseError(f"the journal can't be read: {words[:200]}")


def _lines_from(pipe: int, patience: float) -> Iterator[str]:
    left, read, rest = patience, 0, b""
    while True:
        began = time.monotonic()
        if not select([pipe], [], [], left)[0]:
            raise PulseError(f"the journal can't be read: not all of it came within {patience:g} s")
        left = max(left - (time.monotonic() - began), 0)
        if not (piece := os.read(pipe, _LONGEST)):
            break
        if (read := read + len(piece)) > _MOST:
            raise PulseError(f"the journal has more than {_MOST // 2**20} MiB of anchors, which no home has")
        *lines, rest = (rest[-_LONGEST:] + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")
