"""The daemon as a process in the background: started, waited for, stopped. (With a unit, systemd does all this.)"""

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, NoReturn

from pulse_adapters.ipc.client import Client
from pulse_adapters.ipc.lock import PATIENCE, LockUnusable, holder
from pulse_adapters.ipc.umask import given_umask
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.plain_file import NotPlain, open_plain
from pulse_adapters.workers.proc import command_line
from pulse_adapters.workers.read_only import NO_NEW_FILE, why_no_new_file
from pulse_core.home import HomeLayout
from pulse_core.model.errors import HomeBusy, NotAnswering, PulseError

READY = 10.0
"""Seconds in which a daemon is ready, or is left to go on by itself."""
LONGEST_COMMAND = 30.0
"""Seconds that a start waits for a command that records something, which takes long on a slow disk or a busy machine."""

MODULE = "upulse_cli.serve"
_STEP = 0.02
Argv = tuple[str, ...]


def daemon_command(home: HomeLayout, *more: str) -> Argv:
    """The command that is the daemon. `-P`: files where it is started must not pass for Python's own."""
    return (sys.executable, "-P", "-m", MODULE, "--home", str(home.path), *more)


def demand_free(home: HomeLayout) -> None:
    """Wait for who holds the home. Raises HomeBusy if that is a daemon, or a command that does not end."""
    began = time.monotonic()
    while held := holder(home.lock):
        is_daemon = not held.pid or MODULE in command_line(held.pid)
        patience = PATIENCE if is_daemon else LONGEST_COMMAND
        if _answer(home) or time.monotonic() - began >= patience:
            raise HomeBusy(str(home.path), held.pid)
        time.sleep(_STEP)


@contextmanager
def successor(lock: Path, work: Callable[[], None], patience: float) -> Iterator[None]:
    """While inside, a child waits to do this if this process is ended: once nobody holds the lock, for so many seconds.

    Whatever is raised here but an interrupt is left to the caller.
    """
    reading, writing = os.pipe()
    if not os.fork():
        os.close(writing)
        _succeed(reading, lock, work, patience)
    os.close(reading)
    try:
        yield
    except Exception:
        os.write(writing, b".")
        raise
    else:
        os.write(writing, b".")
    finally:
        os.close(writing)


def _succeed(pipe: int, lock: Path, work: Callable[[], None], patience: float) -> NoReturn:
    """In the child: wait for the other end of the pipe, from which a word comes if there is nothing to do."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        if not os.read(pipe, 1):
            until = time.monotonic() + patience
            while holder(lock) and time.monotonic() < until:
                time.sleep(_STEP)
            work()
    finally:
        os._exit(0)


@dataclass(frozen=True)
class DaemonProcess:
    """Implements `BackgroundDaemon`. spell: a line of the daemon's log as people read it; say: tells what takes long."""

    home: HomeLayout
    spell: Callable[[str], str]
    say: Callable[[str], None]

    def start(self, *options: str) -> int:
        """Start a daemon in a session of its own, and wait until it is ready; its process."""
        demand_free(self.home)
        with self._log() as log:
            before = log.seek(0, os.SEEK_END)
            child = subprocess.Popen(
                daemon_command(self.home, "--background", *options),
                env=inherited_environment(),  # with a mark of another home's it would end with whoever starts it here
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=given_umask(),
            )
            return self._wait_until_ready(child, log, before)

    def _wait_until_ready(self, child: "subprocess.Popen[bytes]", log: IO[bytes], before: int) -> int:
        until, daemon = time.monotonic() + READY, None
        while time.monotonic() < until:
            if child.poll() is not None:
                raise PulseError(self._last_words(child.returncode, log, before))
            daemon = _answer(self.home)
            if daemon and daemon["pid"] == child.pid and daemon["state"] != "starting":
                break
            time.sleep(_STEP)
        child.returncode = 0  # it is not waited for: it goes on without us
        if daemon and daemon["pid"] == child.pid:
            return child.pid  # one that is not ready does what it can
        raise PulseError(
            f"the daemon (process {child.pid}) does not answer after {READY:g} s, but lives "
            "and goes on starting; see upulse daemon logs, then upulse status"
        )

    def _log(self) -> IO[bytes]:
        """The file that the daemon speaks into; one without a name where none can be made or written, or that is no file.

        Where no such file can be made either, nothing: no survival action waits for a place to speak into.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            if not why_no_new_file(self.home.path):
                return open(open_plain(self.home.daemon_log, flags, 0o666, follow=True), "a+b")
        except OSError as error:
            if error.errno not in NO_NEW_FILE:
                is_odd = isinstance(error, NotPlain | IsADirectoryError)
                fault = "is no plain file" if is_odd else f"can't be written ({error.strerror})"
                self.say(f"{self.home.daemon_log} {fault}; what the daemon says is kept nowhere")
        try:
            return TemporaryFile()
        except OSError:
            return open(os.devnull, "r+b")

    def _last_words(self, code: int, log: IO[bytes], before: int) -> str:
        """What the daemon said before it ended, in its own words."""
        how = f"exit {code}" if code >= 0 else f"signal {-code}"
        log.seek(before)
        said = log.read()
        with suppress(OSError), open(open_plain(self.home.daemon_log, follow=True), "rb") as newer:
            if newer.seek(0, os.SEEK_END) < before:  # it has begun a new file
                newer.seek(0)
                said += newer.read()
        words = "\n".join(map(self.spell, said.decode("utf-8", "replace").splitlines()[-10:]))
        if not words and (most := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) != resource.RLIM_INFINITY:
            words = f"it could say nothing: no file may have more than {most} bytes here; see: ulimit -f"
        return f"the daemon did not start ({how}):\n{words}" if words else f"the daemon did not start ({how})"

    def stop(self, patience: float) -> int | None:
        """Ask the daemon to stop and wait until it has; its process, or None if there was none."""
        pid = self._pid()
        if pid is None:
            return None
        if not pid:
            raise PulseError(
                f"somebody holds {self.home.path}, and the kernel does not say which process it is"
            )
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        try:
            if self._pid() != pid:
                return None
            signal.pidfd_send_signal(process, signal.SIGTERM)  # type: ignore[attr-defined, unused-ignore]
            self._wait(process, pid, patience)
        except PermissionError as error:
            raise PulseError(f"process {pid} may not be stopped by this user; ask its owner") from error
        finally:
            os.close(process)
        return pid

    def _pid(self) -> int | None:
        """Who holds the home; or, if the disk doesn't say, who answers. None if nobody does, 0 if that can't be told."""
        try:
            held = holder(self.home.lock)
        except LockUnusable:
            if daemon := _answer(self.home):
                return int(daemon["pid"])
            raise
        return held.pid if held else None

    def _wait(self, process: int, pid: int, patience: float) -> None:
        """Until the process has ended; its pidfd is readable then."""
        ended, _, _ = select.select([process], [], [], 1.0)
        if not ended:
            self.say(f"waiting for process {pid} to stop …")
            ended, _, _ = select.select([process], [], [], patience)
        if not ended:
            raise PulseError(
                f"process {pid} was asked to stop and still runs after {patience + 1:.0f} s; see upulse daemon logs; "
                f"kill -9 {pid} ends it, and nothing recorded is lost"
            )


def _answer(home: HomeLayout) -> Mapping[str, Any] | None:
    try:
        with Client(home.socket, timeout=1.0) as client:
            daemon: Mapping[str, Any] = client.ask("status")["daemon"]
            return daemon
    except NotAnswering:
        return None


def replace_process(argv: Argv) -> None:
    """Become this command, so that nothing of the command line stays in memory."""
    sys.stdout.flush()
    if (umask := given_umask()) >= 0:
        os.umask(umask)
    os.execv(argv[0], argv)


LAST_BYTES, LONGEST_LINE = 4 << 20, 64 << 10
"""How much of the end of a log is read for its last lines, and of one line shown: the file may be of any size."""
_LOOK_S = 0.1


def log_lines(path: Path, count: int, follow: bool) -> Iterator[str]:
    """The last lines of a log, and then what comes, also in the next file, if that is wanted."""
    file, rest = _open_log(path), b""
    try:
        if file:
            lines, rest = _last_lines(file)
            yield from _texts([*lines, *([rest] if rest and not follow else [])][-count:] if count else [])
        while follow:
            if file and (chunk := file.read(LONGEST_LINE)):
                *lines, rest = (rest + chunk).split(b"\n")
                rest = rest[: LONGEST_LINE + 1]
                yield from _texts(lines)
            elif (new := _open_log(path)) and not (
                file and os.path.sameopenfile(file.fileno(), new.fileno())
            ):
                if file:
                    file.close()
                file, rest = new, b""
            else:
                if new:
                    new.close()
                if file and os.fstat(file.fileno()).st_size < file.tell():  # it was emptied
                    file.seek(0)
                    rest = b""
                else:
                    time.sleep(_LOOK_S)
    finally:
        if file:
            file.close()


def _open_log(path: Path) -> BinaryIO | None:
    try:
        return open(open_plain(path, follow=True), "rb")
    except OSError:
        return None


def _last_lines(file: BinaryIO) -> tuple[list[bytes], bytes]:
    """The lines at the end of a file, and what comes after the last line break."""
    begin = file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
    raw = file.read(LAST_BYTES)
    if begin:
        raw = raw.partition(b"\n")[2] or raw
    *lines, rest = raw.split(b"\n")
    return lines, rest[: LONGEST_LINE + 1]


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        text = line[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
        yield from (f"{text}…" if len(line) > LONGEST_LINE else text).split("\r")
