"""Reads PID files. They may be stale: the process may be gone and its pid reused."""

import os
import time

from pulse_adapters.host.clock import boot_us
from pulse_adapters.workers.proc import TICKS_PER_SECOND, start_time_of
from pulse_core.ports import ProcessId, ProcessObservation

_SLACK_S = 2.0  # start times are told in hundredths, file times in the tick of the file system


def observe_pid_file(path: str) -> ProcessObservation:
    """The process that a PID file names, if it is alive and was there when the file was written."""
    try:
        pid, written = _read(path)
    except (OSError, ValueError) as error:
        return ProcessObservation(detail=_read_error(path, error))
    since = start_time_of(pid)
    if since is None:
        return ProcessObservation(detail=f"process {pid} of {path} is not alive")
    if _wall_time(since) > written + _SLACK_S:
        return ProcessObservation(
            detail=f"process {pid} is younger than {path}: its number was given to another process"
        )
    return ProcessObservation((ProcessId(pid, since),), detail=f"process {pid} of {path}")


def names_process(path: str, found: ProcessId) -> bool:
    """Whether the file names this process."""
    try:
        return _read(path)[0] == found.pid
    except (OSError, ValueError):
        return False


def _read(path: str) -> tuple[int, float]:
    """The number in the file, and when it was written (seconds, UTC)."""
    # A FIFO in its place must not hang us.
    file = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK)
    try:
        text = os.read(file, 100).split()
        pid = int(text[0]) if text and text[0].isdigit() else 0
        if not 0 < pid < 2**31:
            raise ValueError("no process id")
        return pid, os.fstat(file).st_mtime
    finally:
        os.close(file)


def _wall_time(since: int) -> float:
    return time.time() - boot_us() / 1e6 + since / TICKS_PER_SECOND


def _read_error(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no {path}"
    if isinstance(error, OSError):
        return f"{path} cannot be read: {error.strerror}"
    return f"{path} holds no process id"
