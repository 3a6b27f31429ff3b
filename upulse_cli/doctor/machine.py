"""The machine around the home: its disk, and its clock."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.model.errors import PulseError
from pulse_core.model.sizes import spell_size
from pulse_core.ports.readers import EventQuery
from upulse_cli.doctor.findings import FAIL, OK, WARN, Finding, Ground

FULL, NEARLY_FULL = 16 << 20, 512 << 20
FEW_INODES = 1_000
DISTANT = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "glusterfs", "fuse.sshfs"}
FLEETING = {"tmpfs", "ramfs"}
JUMP_US = 5_000_000
_UNSYNCHRONISED = 0x40


def disk(ground: Ground) -> Iterator[Finding]:
    """Room for the log."""
    found = os.statvfs(ground.home.path)
    free = found.f_bavail * found.f_frsize
    words = f"{spell_size(free)} free for {ground.home.path}"
    remedy = "make room; in the home: damaged/, logs/ and bundles/ may go, and upulse gc"
    yield Finding("disk", FAIL if free < FULL else WARN if free < NEARLY_FULL else OK, words,
                  remedy if free < NEARLY_FULL else "")  # fmt: skip
    if found.f_files:
        few = found.f_favail < FEW_INODES
        remedy = "remove files; of the home's, upulse gc removes those of no use" if few else ""
        yield Finding("inodes", WARN if few else OK, f"{found.f_favail} free", remedy)


def file_system(ground: Ground) -> Iterator[Finding]:
    """Whether it keeps what it is given, and locks what is locked."""
    kind = type_of(ground.home.path)
    if kind in DISTANT:
        yield Finding("file system", FAIL, f"the home lies on {kind}, which does not lock and map files as SQLite needs it",
                      "move the home to a local disk")  # fmt: skip
    elif kind in FLEETING:
        yield Finding("file system", WARN, f"the home lies on {kind} and is gone when the machine restarts",
                      "move the home to a disk")  # fmt: skip
    else:
        yield Finding("file system", OK, kind)


def type_of(path: Path) -> str:
    """The type of the file system that holds this path, as /proc tells it."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    here = path.resolve()
    found = [(place, kind) for place, kind in mounts if here.is_relative_to(_unescaped(place))]
    return max(found, key=lambda mount: len(mount[0]), default=("/", "unknown"))[1]


def _unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape") if "\\" in text else text


def clock(ground: Ground) -> Iterator[Finding]:
    """Whether the wall clock is kept right, and whether it was set while the machine was up."""
    status = kernel_clock_status()
    if status is None:
        yield Finding("clock", WARN, "whether the clock is synchronised can't be known", "see: timedatectl")
    elif status & _UNSYNCHRONISED:
        words = "the clock is not synchronised; durations are right all the same, times of day may not be"
        yield Finding("clock", WARN, words, "run chrony, systemd-timesyncd, or another NTP client")
    else:
        yield Finding("clock", OK, "the clock is synchronised")
    if shift := shift_of_clock(ground):
        far = f"{'forward' if shift > 0 else 'back'} by {abs(shift) / 1e6:.0f} s"
        yield Finding("clock jump", WARN, f"the wall clock was set {far} since the daemon last started",
                      "nothing: durations come from the boot clock; only times of day before that are off")  # fmt: skip


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "frequency", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def kernel_clock_status() -> int | None:
    """The status bits of adjtimex(2), or None if it can't be asked."""
    asked = _Timex()
    answer = ctypes.CDLL(None).adjtimex(ctypes.byref(asked))
    return None if answer < 0 else int(asked.status)


def shift_of_clock(ground: Ground) -> int:
    """By how much the wall clock was set since the last start of the daemon in this boot, microseconds; 0 if it was not."""
    if not ground.home.events.exists():
        return 0
    now, last = SystemClock().now(), None
    with (
        suppress(PulseError),
        SqliteEventReader(ground.home.path) as log,
    ):  # what is wrong with the log is said elsewhere
        last = next(log.events(EventQuery(kinds=("daemon-started",)), limit=1, newest_first=True), None)
    if last is None or last.boot != now.boot:
        return 0
    shift = (now.at - now.mono) - (last.at - last.mono)
    return shift if abs(shift) > JUMP_US else 0
