"""Starts programs detached from Pulse: own session, default signals, no inherited descriptors."""

import errno
import os
import time
from collections.abc import Mapping, Sequence

from pulse_adapters.workers.proc import TICKS_PER_SECOND, read_stat
from pulse_adapters.workers.spawn import find_program, spawn
from pulse_core.model.errors import PulseError
from pulse_core.ports.host import ProcessId


def launch(
    argv: Sequence[str],
    env: Mapping[str, str],
    output: int,
    *,
    cwd: str | None,
    executable: str | None = None,
) -> ProcessId:
    """Start a program and return as soon as it is being executed; raises PulseError if it cannot be.

    `output` is the descriptor that its stdout and stderr go to; `executable` is run instead of looking argv[0] up.
    """
    try:
        program = executable or find_program(argv[0], env)
        before = _ticks_now()
        pid = spawn(program, argv, env, {1: output, 2: output}, cwd=cwd)
    except (OSError, ValueError) as error:
        raise PulseError(_start_error(argv[0], cwd, env, error)) from error
    return _child_identity(pid, before, _ticks_now())


def _ticks_now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND // 1_000_000_000


def _child_identity(pid: int, before: int, after: int) -> ProcessId:
    """The new child's identity. Reading its start time would wait until it is executed, half a millisecond;
    so it is read only if a clock tick went by in between.
    """
    if before == after:
        return ProcessId(pid, before)
    born = read_stat(pid)  # there even if it has died already: nobody has reaped it
    return ProcessId(pid, born.started if born else after)


def _start_error(program: str, cwd: str | None, env: Mapping[str, str], error: OSError | ValueError) -> str:
    """Why the program could not be started, with what to change."""
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
