"""Looks paths up name by name, each in a folder that is open, and tells whose links led to what lies there."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40


@contextmanager
def led_to(path: str) -> Iterator[tuple[int, Mapping[int, str]]]:
    """What an absolute path leads to, by a descriptor of O_PATH, and a link of each user's that led there, but of root's
    and of this one. Raises OSError."""
    names, links, of_others = path.split("/")[::-1], 0, dict[int, str]()
    here = os.open("/", LOOK)
    try:
        while names:
            step, flags = names.pop() or ".", LOOK
            if link := _link_at(step, here):
                if (links := links + 1) > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                owner, target = link
                if owner not in (0, os.geteuid()):
                    of_others[owner] = step
                if target is None:
                    flags &= ~os.O_NOFOLLOW
                else:
                    names += reversed(target.split("/"))
                    step = "/" if target.startswith("/") else "."
            there = os.open(step, flags, dir_fd=here)
            os.close(here)
            here = there
        yield here, of_others
    finally:
        os.close(here)


def _link_at(name: str, within: int) -> tuple[int, str | None] | None:
    """Whose link has this name, and where it leads: None for one of the kernel's own in /proc, which the kernel alone can
    follow. None for what is no link."""
    there = os.open(name, LOOK, dir_fd=within)
    try:
        found = os.fstat(there)
        if not stat.S_ISLNK(found.st_mode):
            return None
        is_of_kernel = found.st_dev == os.stat("/proc").st_dev
        return found.st_uid, None if is_of_kernel else os.readlink("", dir_fd=there)
    finally:
        os.close(there)
