"""Which file systems may never answer, and what one is asked by who can't wait for that."""

import os
import re
import select
import signal
from collections.abc import Callable
from typing import TypeVar

from pulse_adapters.workers.syscalls import prctl
from pulse_core.model.errors import PulseError

PATIENCE_S = 2.0
"""Seconds within which a file system answers, or counts as dead."""

_LOCAL = frozenset(
    b"bcachefs bpf btrfs cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs erofs exfat ext2 ext3 ext4 f2fs hugetlbfs "
    b"iso9660 jfs mqueue nsfs overlay proc pstore ramfs securityfs squashfs sysfs tmpfs tracefs vfat xfs zfs".split()
)
"""Kinds of file systems that the kernel answers for by itself, from a disk of this machine or from memory."""
_KERNELS_OWN = (b"/proc/", b"/sys/", b"/dev/")
"""Where systemd has an `autofs`, and the kernel its control files: no program lies there."""
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_DESCRIPTORS = 1 << 20
_DEATH_SIGNAL = 1

Answer = TypeVar("Answer")


class NoAnswer(PulseError, TimeoutError):
    """A file system has not answered in time."""


def has_others(table: str = "/proc/self/mountinfo") -> bool:
    """Whether a file system is mounted here that a server or a program answers for, and that may thus never answer.

    This reads what the kernel remembers, and asks no file system.
    """
    with open(table, "rb") as lines:
        for line in lines:
            place, kind = line.split(b" ", 5)[4], line.partition(b" - ")[2].partition(b" ")[0]
            if kind not in _LOCAL and not place.startswith(_KERNELS_OWN):
                return True
    return False


def mount_point(field: bytes) -> str:
    """A mount point as a mount table of the kernel writes it: blanks, line breaks, backslashes and # as octal."""
    return os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), field))


def answer_in_time(about: str, question: Callable[[], Answer], patience_s: float | None = None) -> Answer:
    """What the question answers or raises, for who has no loop. Raises NoAnswer if that takes too long.

    Where it might, a child asks first: a thread that waits for a lookup of somebody else can't be killed, and this process
    would not end.
    """
    if has_others():
        if not ends(child := ask_in_child(question), PATIENCE_S if patience_s is None else patience_s):
            raise NoAnswer(f"the file system of {about} does not answer")
        os.waitpid(child, 0)
    return question()


def ask_in_child(question: Callable[[], object]) -> int:
    """The process id of a child that asks and ends, at the latest with this thread; it holds nothing that is open here."""
    if child := os.fork():
        return child
    try:
        os.closerange(0, _DESCRIPTORS)  # a lock or a pipe would be held as long as it waits
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
        question()
    finally:
        os._exit(0)


def ends(child: int, patience_s: float) -> bool:
    """Whether a child ends within so many seconds; else it is killed. Either way it is still to be waited for."""
    handle = os.pidfd_open(child)
    try:
        end = select.poll()
        end.register(handle, select.POLLIN)
        if not (is_over := bool(end.poll(patience_s * 1000))):
            os.kill(child, signal.SIGKILL)
        return is_over
    finally:
        os.close(handle)
