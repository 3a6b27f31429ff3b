"""Files that Pulse writes beside its log: their sizes, and truncating them."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.host.outputs import truncate_log
from pulse_core.daemon.disk_quota import Cut, ProcessOutput
from pulse_core.home import HomeLayout
from pulse_core.model.text import format_size

OLDER = ".1"


@dataclass(frozen=True)
class HomeFiles:
    """Implements `OwnFiles`. reserve_size: bytes that `make_reserve` holds back for a full disk."""

    home: HomeLayout
    reserve_size: int
    make_reserve: Callable[[], object]

    def sizes(self) -> tuple[int, Sequence[ProcessOutput]]:
        """The bytes of vitals.db with its -wal, and every output."""
        vitals = sum(bytes_on_disk(Path(f"{self.home.vitals}{part}")) for part in ("", "-wal"))
        return vitals, list(outputs_in(self.home.outputs))

    def cut(self, cuts: Sequence[Cut]) -> list[str]:
        """Truncate the outputs; returns what was done, in words."""
        return [cut_output(self.home.outputs / one.name, one.kept) for one in cuts]

    def hold_back(self) -> None:
        """Create the reserve for a full disk again, once it was released and there is room for it."""
        if self.home.reserve.exists():
            return
        file_system = os.statvfs(self.home.run)
        if file_system.f_bavail * file_system.f_frsize >= 2 * self.reserve_size:
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
