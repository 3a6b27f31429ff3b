"""Errors that say nothing of who is looked at or asked, but that this machine, or this process, lacks what that takes."""

import errno
import os
from collections.abc import Mapping

SHORTAGES: Mapping[int, str] = {
    errno.EADDRNOTAVAIL: "no local port is free to connect from: other programs hold them",
    **{number: os.strerror(number) for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)},
}
"""By number, in words."""


def shortage(error: BaseException) -> str:
    """What is lacking, in words; empty if the error is another one."""
    return SHORTAGES.get(error.errno or 0, "") if isinstance(error, OSError) else ""
