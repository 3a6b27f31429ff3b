"""Why a daemon gave up, kept in a file of its home for `status`: a log knows nothing of a daemon that can't open it."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulse_adapters.workers.plain_file import open_plain
from pulse_core.model.home_status import FailedDaemon
from pulse_core.model.text import encodable

LONGEST = 2_000
"""Characters of the reason that are kept."""
_MOST_BYTES = 64 << 10


@contextmanager
def record_failure(path: Path, words: Callable[[BaseException], str]) -> Iterator[None]:
    """Write into this file why what is done inside failed, as far as that can be written; for the holder of the home's lock.
    What the daemon before it wrote there is removed first. words: why, of an error.
    """
    began = _now()
    with suppress(OSError):
        path.unlink()
    try:
        yield
    except (Exception, BaseExceptionGroup) as error:
        said = {"began": began, "at": _now(), "why": encodable(words(error))[:LONGEST]}
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with suppress(OSError), open(open_plain(path, flags), "wb") as file:
            file.write(json.dumps(said).encode())
        raise


def read_failure(path: Path) -> FailedDaemon | None:
    """The daemon that gave up according to this file; None if there is none, or it says something else."""
    try:
        with open(open_plain(path), "rb") as file:
            said = json.loads(file.read(_MOST_BYTES))
        return FailedDaemon(max(0, int(said["began"])), max(0, int(said["at"])), encodable(str(said["why"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _now() -> int:
    return time.time_ns() // 1000
