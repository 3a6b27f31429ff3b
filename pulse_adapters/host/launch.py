"""Bringing a program to life, cut loose from Pulse: own session, default signals, no inherited descriptors."""

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pulse_adapters.host.start_process import IGNORED_BY_PYTHON, begun, closed_at_exec, looked_up
from pulse_adapters.workers.proc import MARKER, PROCESS, TICKS_PER_SECOND, entry
from pulse_core.model.errors import PulseError
from pulse_core.ports import ProcessId

_OURS = ("NOTIFY_SOCKET", "INVOCATION_ID", "JOURNAL_STREAM", MARKER, PROCESS)
_OUR_PREFIXES = ("WATCHDOG_", "LISTEN_")


class Launcher:
    """Starts programs with this process's environment as it was when the launcher was made."""

    def __init__(self) -> None:
        self._inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in _OURS and not name.startswith(_OUR_PREFIXES)
        }
        self._ignored = _ignored_signals()
        closed_at_exec()

    def launch(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str],
        output: int,
        executable: str | None = None,
    ) -> ProcessId:
        """Start a program and return as soon as it is being executed; raises PulseError if it cannot be.

        `output` is the descriptor that its stdout and stderr go to; `executable` is run instead of looking
        argv[0] up. The environment is the inherited one, less what systemd told the daemon alone, and `env`.
        """
        whole = {**self._inherited, **env}
        try:
            program = executable or looked_up(argv[0], whole)
            with self._default_signals():
                before = _ticks_now()
                pid = begun(program, argv, whole, output, cwd)
        except (OSError, ValueError) as error:
            raise PulseError(_sentence(argv[0], cwd, whole, error)) from error
        return _born(pid, before, _ticks_now())

    @contextmanager
    def _default_signals(self) -> Iterator[None]:
        """While inside, what is executed gets an empty signal mask and default dispositions.

        An ignored signal stays ignored across exec, a handled one goes back to its default: so ignored ones
        get a handler that does nothing, which keeps this process as deaf as it was. SIGPIPE and SIGXFSZ,
        which Python ignores, are restored in any case.
        """
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        for number in self._ignored:
            signal.signal(number, lambda *_: None)
        if mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
        try:
            yield
        finally:
            if mask:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for number in self._ignored:
                signal.signal(number, signal.SIG_IGN)


def _ignored_signals() -> list[int]:
    if threading.current_thread() is not threading.main_thread():
        return []  # only the main thread may change dispositions
    return [
        number
        for number in range(1, signal.NSIG)
        if number not in IGNORED_BY_PYTHON and signal.getsignal(number) is signal.SIG_IGN
    ]


def _ticks_now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND // 1_000_000_000


def _born(pid: int, before: int, after: int) -> ProcessId:
    """The new child's identity. Reading its start time would wait until it is executed, half a millisecond;
    so it is read only if a clock tick went by in between.
    """
    if before == after:
        return ProcessId(pid, before)
    born = entry(pid)  # there even if it has died already: nobody has reaped it
    return ProcessId(pid, born.started if born else after)


def _sentence(program: str, cwd: str | None, env: Mapping[str, str], error: OSError | ValueError) -> str:
    """What went wrong, in the words of somebody who wants to mend it."""
    start = f"cannot start {program!r}: "
    if not isinstance(error, OSError):
        return f"{start}{error}"
    if cwd is not None and error.filename == cwd:
        return f"{start}its working directory {cwd!r} cannot be entered ({error.strerror})"
    if isinstance(error, FileNotFoundError) and os.path.lexists(program):
        return f"{start}the file is there, but the interpreter it names is not"
    if isinstance(error, FileNotFoundError) and "/" in program:
        return f"{start}there is no such file; give the path of a program"
    if isinstance(error, FileNotFoundError):
        return f"{start}there is no such program in PATH ({env.get('PATH', '')}); give its full path"
    if isinstance(error, PermissionError):
        return f"{start}it may not be executed; make it executable for the user Pulse runs as"
    if error.errno == errno.ENOEXEC:
        return f"{start}it is no program; a script needs a first line such as #!/bin/sh"
    return f"{start}{error.strerror}"
