"""Files of a home beside its log: their sizes, truncating them, and those that are no longer needed."""

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.host.disks import is_local
from pulse_adapters.host.outputs import ROTATE_AT, truncate_log
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.full_disk import free_room, is_full
from pulse_core.app.gc import MINIMUM_AGE
from pulse_core.daemon.disk_quota import Cut, ProcessOutput
from pulse_core.home import HomeLayout
from pulse_core.model.text import format_size
from pulse_core.settings.resources import SessionsSettings
from pulse_core.settings.settings import Settings

OLDER = ".1"


@dataclass
class HomeFiles:
    """Implements `OwnFiles`. reserve_size: bytes that `make_reserve` holds back for a full disk.

    is_in_place: whether the home lies where it did; else nothing is done there, where another one may lie; outputs_lost: why
    what processes print may be lost, as far as was seen last.
    """

    home: HomeLayout
    reserve_size: int
    make_reserve: Callable[[], object]
    is_in_place: Callable[[], bool] = lambda: True
    outputs_lost: str = field(default="", init=False)

    def sizes(self) -> tuple[int, Sequence[ProcessOutput]]:
        """The bytes of vitals.db with its -wal, and every output."""
        if not self.is_in_place():
            return 0, []
        vitals = sum(map(bytes_on_disk, files_of(self.home.vitals)[:2]))
        return vitals, list(outputs_in(self.home.outputs))

    def cut(self, cuts: Sequence[Cut]) -> list[str]:
        """Truncate the outputs; returns what was done, in words."""
        return [cut_output(self.home.outputs / one.name, one.kept) for one in cuts if self.is_in_place()]

    def look_for_lost_outputs(self) -> str:
        """That logs/ is full, if it is a file system of its own: of a full home its log and its disk's condition tell."""
        outputs, self.outputs_lost = self.home.outputs, ""
        with suppress(OSError):
            is_own = outputs.stat().st_dev != self.home.path.stat().st_dev
            if is_own and self.is_in_place() and is_full(outputs):
                words = "what processes print is lost while it does not fit"
                self.outputs_lost = f"{outputs} is a file system of its own, and full; {words}"
        return self.outputs_lost

    def hold_back(self) -> None:
        """Create the reserve for a full disk again, once it was released and there is room for it."""
        if not self.is_in_place() or self.home.reserve.exists():
            return
        file_system = os.statvfs(self.home.run)
        if free_room(file_system) >= 2 * self.reserve_size:
            self.make_reserve()


def outputs_in(directory: Path) -> Iterator[ProcessOutput]:
    """Every output in logs/ that is a plain file."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(".log"):
            yield ProcessOutput(
                name, bytes_on_disk(directory / name), bytes_on_disk(directory / f"{name}{OLDER}")
            )
        elif name.endswith(f".log{OLDER}") and name.removesuffix(OLDER) not in names:
            yield ProcessOutput(name.removesuffix(OLDER), 0, bytes_on_disk(directory / name))


def bytes_on_disk(path: Path) -> int:
    """Bytes that a plain file takes on the disk; 0 for anything else."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return min(found.st_size, found.st_blocks * 512) if stat.S_ISREG(found.st_mode) else 0


def cut_output(path: Path, kept: int) -> str:
    """Move the end of an output to its `.1`, whose old content goes first to make room; returns what was done."""
    older = path.with_name(path.name + OLDER)
    before = bytes_on_disk(older)
    older.unlink(missing_ok=True)
    return f"{path.name} gives back {format_size(before + truncate_log(path, kept))}"


OLD_LOG = 7 * 86_400.0
"""Seconds after which a log that was put aside at a rotation goes."""

ARCHIVE = re.compile(r"sessions-(\d{8}T\d{6}Z)-(.+)-\d+\.tar\.gz")
"""As `pulse_adapters.files.archive` has it, which is too large to import where nothing is archived."""


class Leftover(NamedTuple):
    """A file that may be removed, or a log that may be truncated, and the bytes that this frees."""

    path: Path
    bytes: int
    is_log: bool = False


@dataclass(frozen=True)
class HomeLeftovers:
    """The files of a home that are of no use any more; both methods are for a thread.

    broken_off: remains of interrupted writes among the objects, with their bytes; expand: the absolute path that a
    setting names.
    """

    home: HomeLayout
    settings: Callable[[], Settings]
    broken_off: Callable[[], Iterable[Mapping[Path, int]]]
    expand: Callable[[str], Path]

    def sizes(self) -> list[int]:
        """The bytes that removing each would free."""
        return [one.bytes for one in self._all()]

    def remove(self) -> list[int]:
        """Remove each; returns the bytes freed."""
        gone = [_remove(one) for one in self._all()]
        return [size for size in gone if size is not None]

    def _all(self) -> Iterator[Leftover]:
        """Each is examined lazily."""
        home, settings, now = self.home, self.settings(), time.time()
        for files in self.broken_off():
            yield from (Leftover(path, size) for path, size in files.items())
        if home.restoring.is_dir() and not home.restore_plan.exists():
            yield Leftover(home.restoring, 0)  # who takes away holds the home's lock, as who restores would
        for pattern in ("*.unfinished", "logs/*.unfinished", ".*.unfinished"):
            yield from _files_before(home.path.glob(pattern), now - MINIMUM_AGE)
        yield from _files_before(
            home.path.glob(f"{home.vitals.name}.unusable*"), now - settings.watch.keep / 1e6
        )
        yield from _files_before(home.outputs.glob("*.log.1"), now - OLD_LOG)
        for path in home.outputs.glob("*.log"):
            if (size := bytes_on_disk(path)) > ROTATE_AT:
                yield Leftover(path, size - ROTATE_AT, is_log=True)
        if sessions := settings.resources.sessions:
            archive = self.expand(sessions.archive) if sessions.archive else home.path / "archive"
            yield from _expired_archives(archive, sessions, now)


def _remove(leftover: Leftover) -> int | None:
    """Remove it; returns the bytes freed, None if that failed."""
    if leftover.is_log:
        return truncate_log(leftover.path) or None
    with suppress(OSError):
        if leftover.path.is_dir() and not leftover.path.is_symlink():
            shutil.rmtree(leftover.path)
        else:
            leftover.path.unlink()
        return leftover.bytes
    return None


def _files_before(paths: Iterator[Path], before: float) -> Iterator[Leftover]:
    for path in paths:
        with suppress(OSError):
            found = path.lstat()
            if found.st_mtime < before and path.is_file():
                yield Leftover(path, found.st_size)


def _expired_archives(directory: Path, sessions: SessionsSettings, now: float) -> Iterator[Leftover]:
    """Archives of sessions whose retention is over; a directory on a file server is left to its archiver."""
    if not is_local(str(directory)) or not directory.is_dir() or _is_in_use(directory):
        return
    before = now - sessions.retain / 1e6
    for leftover in _files_before(iter(sorted(directory.iterdir())), before):
        made = ARCHIVE.fullmatch(leftover.path.name)
        with suppress(ValueError):  # its digits are no date: it is somebody else's
            if made and datetime.strptime(made[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() < before:
                yield leftover


def _is_in_use(directory: Path) -> bool:
    """Whether an archiver runs there, or that can't be determined."""
    try:
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
