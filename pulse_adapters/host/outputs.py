"""Output of the programs that Pulse starts: into a rotated log file, or captured in memory with a bound."""

import asyncio
import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.plain_file import open_plain, replacing
from pulse_adapters.workers.spawn import nowhere
from pulse_core.model.secret_text import hide_secrets
from pulse_core.model.text import clean

ROTATE_AT = 10 * 1024 * 1024
"""A larger log is put aside, and of one that is being written so much is kept."""
_PIECE = 1 << 20
HEAD, TAIL = 16 * 1024, 48 * 1024
A_SECOND = 1024 * 1024
"""Bytes of a command's output that are read in a second: twenty that print endlessly held up all else on the loop."""


class LogOutput(NamedTuple):
    """Where an output goes: a descriptor, the file behind it (None: nowhere), and why it is not the one that was wanted.

    size: its bytes when it was opened.
    """

    target: int
    path: Path | None
    why: str = ""
    size: int = 0


async def open_log(files: FileThreads, path: Path, current: Callable[[Path], Path]) -> LogOutput:
    """As `open_log_output`; nowhere, too, while the file system of a log does not answer. current: where it lies now."""

    def opened() -> LogOutput:
        try:
            place = current(path)
        except OSError as error:
            return _nowhere(f"{path} can't be opened ({error.strerror})")
        return open_log_output(place)

    try:
        return await files.take(str(path), opened, lambda late: os.close(late.target))
    except TimeoutError as error:
        return _nowhere(str(error))


def _nowhere(why: str) -> LogOutput:
    return LogOutput(os.dup(nowhere()), None, f"{why}; the output is not kept")


def open_log_output(path: Path) -> LogOutput:
    """Open `path` to append to it; a file over 10 MiB is first renamed to `.1`.

    A disk that refuses that must keep nobody down: then the output goes to the file unrotated, to `.1`, or nowhere. Nor
    must one that hangs: a file that is there is opened without asking for a change, which would wait for the disk.
    """
    with suppress(OSError):
        file, size = _open_to_append(path, 0)
        if size <= ROTATE_AT:
            return LogOutput(file, path, size=size)
        os.close(file)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)  # not the home: it may have been moved
    except FileExistsError:  # a file, or a link to nothing
        return _nowhere(f"{path.parent} is no directory; move it away")
    except OSError:
        pass  # to open the log says why
    try:
        if path.exists() and path.stat().st_size > ROTATE_AT:
            os.replace(path, f"{path}.1")
    except OSError as error:
        why = f"{path} can't be rotated ({error.strerror})"
    else:
        why = ""
    for place in (path, Path(f"{path}.1")):
        try:
            file, size = _open_to_append(place)
            return LogOutput(file, place, why and f"{why}; the output goes to {place}", size)
        except OSError as error:
            why = why or f"{path} can't be opened ({error.strerror})"
    return _nowhere(why)


def _open_to_append(path: Path, create: int = os.O_CREAT) -> tuple[int, int]:
    """The file, open, and how large it is. Raises OSError."""
    # Without O_NONBLOCK a pipe in its place would hang the daemon until somebody reads it.
    flags = os.O_WRONLY | os.O_APPEND | create | os.O_NONBLOCK | os.O_NOFOLLOW
    file = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG((found := os.fstat(file)).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
    except OSError:  # also of a file system that fails from now on
        os.close(file)
        raise
    os.set_blocking(file, True)
    return file, found.st_size


def truncate_log(path: Path, kept: int = ROTATE_AT) -> int:
    """Move the last bytes (10 MiB) of a larger log to `.1` and empty it; returns the bytes freed.

    A process that has it open to append goes on at its beginning. What is written between copying and truncating is lost,
    and what is written beyond as much again while it is copied: a copy of all that is written without a pause would never
    end. If the disk has no room for the copy, the log is truncated all the same.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= kept:
            return 0
        copied = _copy_from(file, found.st_size - kept, found.st_size + kept, Path(f"{path}.1"))
        os.ftruncate(file, 0)
        return found.st_size - copied
    finally:
        os.close(file)


def _copy_from(file: int, start: int, end: int, target: Path) -> int:
    """Replace the target by all from `start` to `end`, with what is appended meanwhile; 0 if that fails."""
    at = start
    try:
        with replacing(target, synced=False) as copy:
            while piece := os.pread(file, min(_PIECE, end - at), at):
                copy.write(piece)
                at += len(piece)
    except OSError:
        return 0
    return at - start


def end_of_life(path: Path, since: int, *environments: Mapping[str, str]) -> str:
    """The last 2,000 bytes that a log has from `since` on, or from its beginning if it was emptied meanwhile.

    For people: secrets hidden, of colours and control characters nothing is left that acts. Raises OSError.
    """
    with open(open_plain(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        first = since if since <= size else 0
        begin = max(first, size - _SEARCHED)
        file.seek(begin)
        text = file.read(_SEARCHED).decode("utf-8", "replace")
    if begin > first:  # in the midst of a line, and maybe of a secret
        text = _after_cut(text)
    if not (text := _COLOUR.sub("", text).replace("\r\n", "\n").replace("\r", "\n").strip()):
        return ""
    blob = clean(hide_secrets(text, *environments)).encode()
    if len(blob) <= _PRINTED:
        return blob.decode()
    end = blob[-_PRINTED:]
    return (end.partition(b"\n")[2] or end).decode(errors="ignore")


def _after_cut(text: str) -> str:
    """Text without the rest of a line at its beginning; of a single long line, without the rest of a word."""
    for rest in (text.partition("\n")[2], *text.split(maxsplit=1)[1:]):
        if rest.strip():
            return rest
    return text


_SEARCHED, _PRINTED = 6 * 1024, 2_000
"""Bytes that are read, since what is hidden may be longer than what it hides, and that are kept."""
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class OutputCapture:
    """The first 16 KiB and the last 48 KiB of an output, and the size of the gap between."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def take(self, chunk: bytes) -> None:
        """Add a chunk; memory stays bounded."""
        room = HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 4 * TAIL:
            self._trim()

    def leave_out(self, size: int) -> None:
        """Count so many bytes that come now and are not taken."""
        self._cut += size

    def _trim(self) -> None:
        over = max(0, len(self._tail) - TAIL)
        self._cut += over
        del self._tail[:over]

    @property
    def text(self) -> str:
        """The kept text, with a note where bytes were dropped."""
        self._trim()
        gap = f"\n[… {self._cut} bytes left out …]\n".encode() if self._cut else b""
        return (self._head + gap + self._tail).decode(errors="replace")


class MemoryOutput:
    """Captures a pipe in memory, 1 MiB a second: who prints more waits.

    A process that still writes after `end` gets SIGPIPE.
    """

    why = ""

    def __init__(self) -> None:
        self._room = A_SECOND
        self._rest: asyncio.TimerHandle | None = None
        self._source, self.target = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.target, True)
        self._capture = OutputCapture()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Close our copy of the write end and start to read."""
        os.close(self.target)
        self.target = -1
        self._go_on()

    def _go_on(self) -> None:
        self._room = A_SECOND
        self._loop.add_reader(self._source, self._read)

    def _read(self) -> None:
        self._room -= self._take()
        if self._room <= 0:
            self._loop.remove_reader(self._source)
            self._rest = self._loop.call_later(1.0, self._go_on)

    def _take(self) -> int:
        try:
            chunk = os.read(self._source, 65536)
        except BlockingIOError:
            return 0
        self._capture.take(chunk)
        if not chunk:
            self._loop.remove_reader(self._source)
        return len(chunk)

    def end(self) -> str:
        """Read what is left in the pipe (at most its capacity, should a process go on writing) and close it."""
        if self._rest:
            self._rest.cancel()
        for _ in range(32):
            if self.target >= 0 or not self._take():
                break
        self._loop.remove_reader(self._source)
        os.close(self._source)
        if self.target >= 0:
            os.close(self.target)
        return self._capture.text


class FileOutput:
    """Appends to a log file; what was appended since the start is the output. why: as in `LogOutput`."""

    def __init__(self, opened: LogOutput) -> None:
        self.target, self._path, self.why, self._since = opened

    def begin(self) -> None:
        """Does nothing: the file keeps the output."""

    def end(self) -> str:
        """Close it and read back what was appended, bounded like a capture. Blocks: ask `FileThreads`."""
        os.close(self.target)
        if self._path is None:
            return f"[{self.why}]"
        capture = OutputCapture()
        try:
            with open(open_plain(self._path), "rb") as file:  # who waits for a pipe there waits for ever
                file.seek(self._since)
                capture.take(file.read(HEAD))
                end = os.fstat(file.fileno()).st_size - TAIL
                if (gap := end - file.tell()) > 0:  # not read: a file has the size that its writer gives it
                    capture.leave_out(gap)
                    file.seek(end)
                capture.take(file.read(2 * TAIL))
        except OSError as error:
            return f"[its output in {self._path} cannot be read: {error.strerror}]"
        return capture.text


def end_of_output(output: str, characters: int = 1500) -> str:
    """The end of an output without what is written as a secret, for an error message."""
    words = hide_secrets(output.strip()[-2 * characters :])  # first: a cut may part a secret from its name
    return words if len(words) <= characters else f"…{words[-characters:]}"
