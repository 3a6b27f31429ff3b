"""The files of projects on this machine. Each `.pulse` is opened once: what is reached through it lies in the project,
whoever swaps in links."""

import errno
import fcntl
import hashlib
import os
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.plain_file import locked, open_plain, replace_plain
from pulse_core.guidance.file_formats import state_text
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import EVENTS, FILES, FOLDER, STATE, TEMPLATES
from pulse_core.guidance.service import FileObservation, Lines
from pulse_core.model.errors import PulseError

LARGEST = 64 << 20
"""Bytes of a file that is read; a larger one counts as none."""
LOCK_WAIT_S, LOCK_STEP_S = 1.0, 0.002
MOST_READINGS = 10
"""Of one file that changes while it is read."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BLOCK = 1 << 20
_MODE = 0o644
"""Other tools are to read it, also those of other users."""


class ProjectFolder:
    """An open `.pulse`. Raises OSError as the system does, and PermissionError for what points out of the project."""

    def __init__(self, root: str, descriptor: int) -> None:
        self._root, self.descriptor = root, descriptor

    @classmethod
    @contextmanager
    def open(cls, root: str) -> Iterator["ProjectFolder"]:
        """The folder; raises OSError if there is none, or none in the project."""
        descriptor = os.open(f"{root}/{FOLDER}", _FOLDER)
        try:
            _require_within(descriptor, root)
            yield cls(root, descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def file(self, name: str) -> Iterator[int]:
        """A regular file in it, or one in the project that a link leads to."""
        descriptor = open_plain(name, within=self.descriptor, follow=True)
        try:
            _require_within(descriptor, self._root)
            yield descriptor
        finally:
            os.close(descriptor)

    def observe(self, name: str) -> tuple[FileObservation, int]:
        """What a file holds, and when it was written last (nanoseconds); read again if that changes meanwhile."""
        with self.file(name) as descriptor:
            for _ in range(MOST_READINGS):
                before = os.fstat(descriptor)
                found = FileObservation(*_hashed(descriptor))
                after = os.fstat(descriptor)
                if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                    break
            return found, after.st_mtime_ns

    def is_being_written(self, name: str) -> bool:
        """Whether somebody has a file open to write it, as far as this user is told: the kernel grants no lease then.

        It is held for no longer than that takes; the signal that its end would send is one that is ignored.
        """
        with suppress(OSError), self.file(name) as descriptor:
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            except BlockingIOError:
                return True
        return False

    def read(self, name: str, most: int) -> bytes:
        """The first bytes of a file."""
        with self.file(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read(most)

    def locked(self) -> AbstractContextManager[None]:
        """Nobody else publishes here meanwhile. Raises OSError if somebody else has the lock for too long."""
        return locked(self.descriptor, LOCK_WAIT_S, LOCK_STEP_S)

    def create(self, name: str, text: str) -> None:
        """A new file with this text; one that is there, or a link of that name, is left as it is."""
        with suppress(FileExistsError):
            replace_plain(name, text.encode(), _MODE, within=self.descriptor, keep=True)

    def replace(self, name: str, texts: Iterable[str]) -> None:
        """Put a file with this text there at once, instead of whatever bears the name."""
        replace_plain(name, (text.encode() for text in texts), _MODE, within=self.descriptor)

    def append(self, name: str, text: str) -> None:
        """Add to a file that is there, in one write."""
        descriptor, data = open_plain(name, os.O_WRONLY | os.O_APPEND, within=self.descriptor), text.encode()
        with open(descriptor, "ab", buffering=0) as file:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, "it was written in part", name)

    def stat(self, name: str) -> os.stat_result:
        """What is known of a file, or of a link of that name."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)


def _hashed(descriptor: int) -> tuple[str, int]:
    """The hash and number of the bytes of a file; raises OSError if there are too many."""
    digest, size = hashlib.sha256(), 0
    os.lseek(descriptor, 0, os.SEEK_SET)
    while block := os.read(descriptor, _BLOCK):
        digest.update(block)
        if (size := size + len(block)) > LARGEST:
            raise OSError(errno.EFBIG, f"it has more than {LARGEST:,} bytes")
    return digest.hexdigest(), size


def _require_within(descriptor: int, root: str) -> None:
    """Raise PermissionError for what lies outside of a project, whatever links led there."""
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not Path(path).is_relative_to(root):
        raise PermissionError(errno.EPERM, "it points out of the project", path)


LONGEST_TEXT = 256 * 1024
"""Bytes of a file that agents are shown."""
LONGEST_STATE = LONGEST_LINE = 1 << 20
LONGEST_EARLIER = 256 << 20
"""Bytes of another program's `events.jsonl` that are taken over."""
SETTLE_S = 0.05
"""Whoever truncates a file and then writes it takes less than this."""
EMPTY_FACTOR = 6
"""Times as long for a file that is empty or gone."""
OPEN_FACTOR = 40
"""Times as long for one that somebody has open to write it."""
STEP_S = 0.003
"""Between two readings of a file that was just written, which must agree."""

Signature = tuple[int, int, int, int, int]


class Published(NamedTuple):
    """Both files as they were when they were looked at last, and for which state of the project."""

    project: GuidedProject
    state: Signature
    events: Signature


class DiskProjectFiles:
    """`ProjectFiles` on this machine. settle: seconds for which a file that was just written is read again and again."""

    def __init__(self, settle: float = SETTLE_S) -> None:
        self._settle = settle
        self._published: dict[str, Published] = {}

    def prepare(self, root: str) -> None:
        try:
            Path(root, FOLDER).mkdir(mode=0o755, exist_ok=True)
            with ProjectFolder.open(root) as folder:
                for name, text in TEMPLATES.items():
                    folder.create(name, text)
        except OSError as error:
            raise PulseError(f"{root}/{FOLDER} can't be used: {error.strerror}") from error

    def is_empty(self, root: str) -> bool:
        with suppress(OSError), ProjectFolder.open(root) as folder:
            return not any(name in FILES for name in os.listdir(folder.descriptor))
        return not os.path.lexists(f"{root}/{FOLDER}")

    def observe(self, root: str, known: Mapping[str, str | None]) -> Mapping[str, FileObservation]:
        seen, youngest = _observed(root)
        began = time.monotonic()
        while known and (changed := [name for name in FILES if seen[name].sha256 != known.get(name)]):
            # Who truncates a file, or takes it away to put another there, may take long for the rest on a busy machine.
            is_open = _is_being_written(root, changed)
            is_half = is_open or any(not seen[name].size for name in changed)
            patience = self._settle * (OPEN_FACTOR if is_open else EMPTY_FACTOR if is_half else 1)
            if time.monotonic() - began >= patience or not 0 <= time.time_ns() - youngest < patience * 1e9:
                break
            time.sleep(STEP_S)
            before, (seen, youngest) = seen, _observed(root)
            if seen == before and not is_half:
                break
        return seen

    def texts(self, root: str) -> Mapping[str, str]:
        found = dict.fromkeys(FILES, "")
        with suppress(OSError), ProjectFolder.open(root) as folder:
            for name in FILES:
                with suppress(OSError):
                    data = folder.read(name, LONGEST_TEXT + 1)
                    text = data[:LONGEST_TEXT].decode("utf-8", "replace")
                    cut = f"\n\n(cut at {LONGEST_TEXT:,} bytes; read {FOLDER}/{name})"
                    found[name] = text + cut if len(data) > LONGEST_TEXT else text
        return found

    def earlier(self, root: str) -> tuple[bytes | None, Iterator[bytes]]:
        state, lines = None, b""
        with suppress(OSError), ProjectFolder.open(root) as folder:
            with suppress(OSError):
                state = folder.read(STATE, LONGEST_STATE)
            with suppress(OSError):
                lines = folder.read(EVENTS, LONGEST_EARLIER)
        return state, iter(lines.split(b"\n"))

    def publish(self, root: str, project: Callable[[], GuidedProject], lines: Lines) -> None:
        # Without the folder there is no place for them.
        with suppress(OSError), ProjectFolder.open(root) as folder:
            last = self._published.get(root)
            if last and last == (project(), _signature(folder, STATE), _signature(folder, EVENTS)):
                return
            self._published.pop(root, None)
            with folder.locked():
                newest = project()
                text = state_text(root, newest)
                if not _is_same(folder, STATE, iter(text.splitlines(keepends=True))):
                    folder.replace(STATE, (text,))
                _publish_events(folder, last, newest, lines)
                signatures = _signature(folder, STATE), _signature(folder, EVENTS)
                self._published[root] = Published(newest, *signatures)


def _publish_events(
    folder: ProjectFolder, last: Published | None, project: GuidedProject, lines: Lines
) -> None:
    """Append what is missing at the end of a file that is known, or only longer by now; compare another one with `lines`."""
    recent, now = [change.line() for change in project.recent], _signature(folder, EVENTS)
    is_known = last and (now == last.events or (now[:2] == last.events[:2] and now[2] > last.events[2]))
    count = _known_end(folder, project, recent) if is_known else None
    known: Lines = (lambda: iter(recent)) if project.count == len(recent) else lines
    if count is None and (whole := known()) is not None:
        if not _is_same(folder, EVENTS, whole):
            folder.replace(EVENTS, known() or ())
    elif (count := count or _known_end(folder, project, recent)) and count < project.count:
        folder.append(EVENTS, "".join(one.line() for one in project.recent if one.number > count))


def _observed(root: str) -> tuple[Mapping[str, FileObservation], int]:
    """What the four files hold, and when one of them, or their folder, was written last (nanoseconds)."""
    seen, youngest = dict.fromkeys(FILES, FileObservation()), 0
    with suppress(OSError), ProjectFolder.open(root) as folder:
        youngest = os.fstat(folder.descriptor).st_mtime_ns
        for name in FILES:
            with suppress(OSError):
                seen[name], written = folder.observe(name)
                youngest = max(youngest, written)
    return seen, youngest


def _is_being_written(root: str, names: Iterable[str]) -> bool:
    """Whether somebody has one of these files open to write it."""
    with suppress(OSError), ProjectFolder.open(root) as folder:
        return any(folder.is_being_written(name) for name in names)
    return False


def _signature(folder: ProjectFolder, name: str) -> Signature:
    """What differs once a file was written, or replaced; zeros if it is missing."""
    with suppress(OSError):
        found = folder.stat(name)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return 0, 0, 0, 0, 0


def _is_same(folder: ProjectFolder, name: str, lines: Iterator[str]) -> bool:
    """Whether the file holds these lines and nothing else."""
    try:
        if not stat.S_ISREG(folder.stat(name).st_mode):
            return False
        with folder.file(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
            found = iter(partial(file.readline, LONGEST_LINE), b"")
            return all(one == (line or "").encode() for one, line in zip_longest(found, lines))
    except OSError:
        return False


def _known_end(folder: ProjectFolder, project: GuidedProject, recent: list[str]) -> int | None:
    """The changes in the file if one of these lines is its last, and those before it are the ones before."""
    with suppress(OSError), folder.file(EVENTS) as descriptor:
        size = sum(map(len, recent))
        end = os.pread(descriptor, size, max(0, os.fstat(descriptor).st_size - size))
        for count in range(len(recent), 0, -1):
            if end.endswith("".join(recent[:count]).encode()):
                return project.recent[count - 1].number
    return None
