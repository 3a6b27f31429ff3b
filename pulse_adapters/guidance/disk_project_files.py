"""The files of projects on this machine."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from pulse_adapters.guidance.project_folder import ProjectFolder, make_folder
from pulse_core.guidance.change_detection import FileObservation
from pulse_core.guidance.file_formats import state_text
from pulse_core.guidance.project_files import Lines
from pulse_core.guidance.projection import GuidedProject
from pulse_core.guidance.protocol import EVENTS, FILES, FOLDER, STATE, TEMPLATES
from pulse_core.model.errors import PulseError

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


@dataclass(frozen=True, slots=True)
class Published:
    """What `events.jsonl` was when it was last right, and how many changes were in it."""

    signature: Signature
    count: int


class DiskProjectFiles:
    """`ProjectFiles` on this machine. settle: seconds for which a file that was just written is read again and again."""

    def __init__(self, settle: float = SETTLE_S) -> None:
        self._settle = settle
        self._published: dict[str, Published] = {}
        self._written: dict[str, tuple[GuidedProject, Signature, Signature]] = {}

    def prepare(self, root: str) -> None:
        make_folder(root)
        try:
            with ProjectFolder.open(root) as folder:
                for name, text in TEMPLATES.items():
                    folder.create(name, text)
        except OSError as error:
            raise PulseError(f"{root}/{FOLDER} can't be written: {error.strerror}") from error

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

    def publish(self, root: str, project: Callable[[], GuidedProject], lines: Lines | None) -> None:
        # Without the folder there is no place for them.
        with suppress(OSError), ProjectFolder.open(root) as folder:
            if self._written.get(root) == (project(), *_signatures(folder)):
                return
            self._written.pop(root, None)
            with folder.locked():
                newest = project()
                text = state_text(root, newest)
                if not _holds(folder, STATE, text):
                    folder.replace(STATE, (text,))
                self._publish_events(folder, root, newest, lines)
                self._written[root] = (newest, *_signatures(folder))

    def _publish_events(
        self, folder: ProjectFolder, root: str, project: GuidedProject, lines: Lines | None
    ) -> None:
        """Append what is missing at the end of a file that is known; another one is compared with the log, line by line."""
        last = self._published.pop(root, None)
        last = last and _advanced(folder, last, project)
        if last is None or not 0 <= project.count - last.count <= len(project.recent):
            last = _checked(folder, project, lines)
        if last and (missing := project.recent[len(project.recent) - (project.count - last.count) :]):
            found = folder.append(EVENTS, "".join(change.line() for change in missing))
            last = Published(_signature(found), project.count)
        if last:
            self._published[root] = last


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


def _holds(folder: ProjectFolder, name: str, text: str) -> bool:
    """Whether a file holds exactly this text."""
    with suppress(OSError):
        data = text.encode()
        return stat.S_ISREG(folder.stat(name).st_mode) and folder.read(name, len(data) + 1) == data
    return False


def _signature(found: os.stat_result) -> Signature:
    """What differs once a file was written, or replaced."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _signatures(folder: ProjectFolder) -> tuple[Signature, Signature]:
    """Of both files; zeros for one that is missing."""
    found = []
    for name in (STATE, EVENTS):
        try:
            found.append(_signature(folder.stat(name)))
        except OSError:
            found.append((0, 0, 0, 0, 0))
    return found[0], found[1]


def _advanced(folder: ProjectFolder, last: Published, project: GuidedProject) -> Published | None:
    """What is known of the file now: the same, or more if another process has added lines; None if it is something else."""
    unknown = [change for change in project.recent if change.number > last.count]
    expected = "".join(change.line() for change in unknown).encode()
    try:
        now, old = _signature(folder.stat(EVENTS)), last.signature
        if now == old:
            return last
        if now[:2] != old[:2] or not 0 < now[2] - old[2] <= len(expected):
            return None
        with folder.file(EVENTS) as descriptor:
            added = os.pread(descriptor, now[2] - old[2], old[2])
    except OSError:
        return None
    is_theirs = expected.startswith(added) and added.endswith(b"\n") and unknown[0].number == last.count + 1
    return Published(now, last.count + added.count(b"\n")) if is_theirs else None


def _checked(folder: ProjectFolder, project: GuidedProject, lines: Lines | None) -> Published | None:
    """The file as the log says it must be, put right if it is not; None where all that is known is its end, and that is
    something else."""
    recent = [change.line() for change in project.recent]
    if project.count == len(recent):
        lines = lambda: iter(recent)  # noqa: E731
    if lines is None:
        return _with_known_end(folder, project, recent)
    found = folder.stat(EVENTS) if _is_same(folder, lines()) else folder.replace(EVENTS, lines())
    return Published(_signature(found), project.count)


def _is_same(folder: ProjectFolder, lines: Iterator[str]) -> bool:
    """Whether the file holds these lines and nothing else."""
    try:
        if not stat.S_ISREG(folder.stat(EVENTS).st_mode):
            return False
        with folder.file(EVENTS) as descriptor, open(descriptor, "rb", closefd=False) as file:
            found = iter(partial(file.readline, LONGEST_LINE), b"")
            return all(one == (line or "").encode() for one, line in zip_longest(found, lines))
    except OSError:
        return False


def _with_known_end(folder: ProjectFolder, project: GuidedProject, recent: list[str]) -> Published | None:
    """The file if one of these lines is its last, and those before it are the ones before."""
    with suppress(OSError), folder.file(EVENTS) as descriptor:
        found = os.fstat(descriptor)
        size = sum(map(len, recent))
        end = os.pread(descriptor, size, max(0, found.st_size - size))
        for count in range(len(recent), 0, -1):
            if end.endswith("".join(recent[:count]).encode()):
                return Published(_signature(found), project.recent[count - 1].number)
    return None
