"""The status of files, asked so that a dead file server holds up nobody but who looks at it."""

import os
from functools import partial

from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.users import expand_home
from pulse_core.checks.outcomes import FileStatus


class AskFiles:
    """Implements `pulse_core.checks.watcher.AskFile`."""

    def __init__(self) -> None:
        self._files = FileThreads()

    async def __call__(self, path: str) -> FileStatus | None:
        return await self._files.ask(path, partial(file_status, path))


def file_status(path: str) -> FileStatus | None:
    """The status of the file that a path leads to; None if there is none."""
    try:
        status = os.stat(expand_home(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileStatus(status.st_size, status.st_mtime_ns // 1000)
