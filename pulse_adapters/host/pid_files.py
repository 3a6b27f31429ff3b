"""PID files: which live process each names, judged by the boot clock, which no step of the wall clock moves."""

import os
import stat
import time
from typing import NamedTuple

from pulse_adapters.host.clock import boot_us
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.proc import TICKS_PER_SECOND, process_of, read_stat, ticks_now, uid_of
from pulse_adapters.workers.users import expand_home
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.host import Life, ProcessObservation
from pulse_core.settings.processes import ProcessSettings

_SLACK_S = 2.0  # start times are told in hundredths, file times in the tick of the file system


class PidFile(NamedTuple):
    """A file as it was read; pid: 0 if there is no number in it; written: seconds, UTC; identity: changes with it.

    writer: the uid of its owner; None if anybody may write to it.
    """

    pid: int
    written: float
    identity: tuple[int, ...] = ()
    writer: int | None = None


class _Seen(NamedTuple):
    """A file since it was last changed: when it was first seen so (clock ticks after boot), and whether the change was."""

    identity: tuple[int, ...]
    at: int
    was_watched: bool


class PidFiles:
    """Reads PID files again and again, and remembers since when each holds what it holds."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def observe(self, path: str) -> ProcessObservation:
        """The process that the file names, if it lives and was there when the file was written.

        Who has started after that has been given the number of another one. That is sure only of a change that was watched,
        by the boot clock. Of an older file the wall clock says it, which may have been set since: so that is a doubt.
        """
        try:
            file = self.read(path)
        except FileNotFoundError:
            return ProcessObservation(detail=f"there is no {path}")
        except OSError as error:
            return ProcessObservation(detail=f"{path} cannot be read: {error.strerror}")
        if not file.pid:
            return ProcessObservation(detail=f"{path} holds no process id")
        named = read_stat(file.pid)
        if named is None or not named.alive:
            return ProcessObservation(detail=f"process {file.pid} of {path} is not alive")
        if named.of_kernel:
            return ProcessObservation(detail=f"process {file.pid} of {path} is the kernel's")
        # /proc lists no thread, and shows it to whoever asks.
        if (process := process_of(file.pid)) not in (None, file.pid):
            return ProcessObservation(detail=f"{file.pid} of {path} is a thread of process {process}")
        if file.writer not in (0, os.geteuid(), uid_of(file.pid)):
            words = f"{path} is not believed: another user, or anybody, may have written it"
            return ProcessObservation(detail=words)
        seen = self._seen[path]
        younger = f"process {file.pid} is younger than {path}"
        if named.started > seen.at + 1:
            return ProcessObservation(detail=f"{younger}: its number was given to another process")
        began = time.time() - boot_us() / 1e6 + named.started / TICKS_PER_SECOND
        if not seen.was_watched and began > file.written + _SLACK_S:
            doubt = f"{younger} by the wall clock, which may have been set: touch the file if that is it, else remove it"
            return ProcessObservation((named.found,), detail=doubt, doubt=doubt)
        return ProcessObservation((named.found,), detail=f"process {file.pid} of {path}")

    def read(self, path: str) -> PidFile:
        """Read the file, and remember since when it is so. Raises OSError."""
        file, before = PidFile(0, 0.0), self._seen.get(path)
        try:
            file = _read(path)
        finally:
            if before is None or before.identity != file.identity:
                self._seen[path] = _Seen(file.identity, ticks_now(), before is not None)
        return file


def is_launching(process: ProcessSettings, life: Life | None, sight: ProcessObservation) -> bool:
    """Whether this is what its last start began, in the first half of its grace: the PID file tells who the server is.

    A launcher that was taken for it would be told as dead when it ends, though it has done its work. What never has
    the file written is taken for it in time to be no start that failed.
    """
    if not (process.pid_file and process.start) or process.tcp or process.systemd_unit:
        return False
    if life is None or sight.found != (life.found,):
        return False
    age_s = (ticks_now() - life.found.started) / TICKS_PER_SECOND
    return age_s <= process.restart.grace / 2 / US_PER_SECOND


def launcher_observation(seen: ProcessObservation, launcher: ProcessObservation) -> ProcessObservation:
    """What was started, which nobody may start again, and nobody knows yet whether it is the server."""
    detail = f"{seen.detail}; {launcher.detail}, and has time to have it written"
    return launcher._replace(busy=True, detail=detail)


def _read(path: str) -> PidFile:
    file = open_plain(expand_home(path), follow=True)
    try:
        text = os.read(file, 100).split()
        number = int(text[0]) if text and text[0].isdigit() else 0
        pid, known = number if 0 < number < 2**31 else 0, os.fstat(file)
        identity = (known.st_dev, known.st_ino, known.st_mtime_ns, known.st_ctime_ns, pid)
        writer = None if known.st_mode & stat.S_IWOTH else known.st_uid
        return PidFile(pid, known.st_mtime, identity, writer)
    finally:
        os.close(file)
