"""Starts a process and says why one can't be started."""

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pulse_adapters.workers.proc import read_stat, ticks_now
from pulse_adapters.workers.spawn import ProcessAttributes, ProcessUser, spawn
from pulse_adapters.workers.threads import start_thread
from pulse_core.model.errors import NotStartable, PulseError
from pulse_core.ports.host import ProcessId


@dataclass
class Birthplace:
    """The folder of a control group, by its descriptor, and whether a process was born in it.

    entrance: the file by which a new process enters it itself, before it is the program; empty where it can be born in it.
    """

    descriptor: int
    entrance: str = ""
    is_used: bool = False


def launch(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    output: int,
    *,
    cwd: str | None,
    user: ProcessUser | None = None,
    attributes: ProcessAttributes | None = None,
    stdin: int | None = None,
    errors: int | None = None,
    birthplace: Birthplace | None = None,
) -> ProcessId:
    """Start a program and return as soon as it is being executed; raises PulseError if it cannot be.

    `output` is the descriptor that its stdout and, without `errors`, its stderr go to; `stdin` is the one that it reads.
    """
    try:
        before = ticks_now()
        given = {1: output, 2: output if errors is None else errors}
        given |= {} if stdin is None else {0: stdin}
        pid = 0
        if birthplace and user is None and attributes is None:
            with suppress(
                OSError
            ):  # the group may be gone, or full; what is wrong with the program is said below
                pid = spawn(program, argv, env, given, cwd=cwd, group=birthplace.descriptor)
                birthplace.is_used = True
        pid = pid or spawn(program, argv, env, given, cwd=cwd, user=user, attributes=attributes)
    except (OSError, ValueError) as error:
        raise start_failure(argv[0], cwd, error) from error
    # Reading its start time would wait until it is executed, half a millisecond; so it is read only if a clock tick
    # went by in between. It can be read even if it has died already: nobody has reaped it.
    after = ticks_now()
    try:
        born = read_stat(pid) if before != after else None
    except OSError as error:
        raise unwatched(pid, error) from error
    return ProcessId(pid, born.started if born else after)


def unwatched(pid: int, error: OSError) -> PulseError:
    """End a new process that can't be watched, as for want of descriptors: its start has failed, and is made again."""
    os.kill(pid, signal.SIGKILL)  # not reaped yet, so it is surely our child
    with suppress(BlockingIOError):  # there are no threads, either
        start_thread(partial(os.waitpid, pid, 0), "reaper")
    return PulseError(f"cannot keep watch over a new process: {error.strerror}")


def start_failure(program: str, cwd: str | None, error: OSError | ValueError) -> PulseError:
    """The failure of a start: of its own type if the machine cannot start it, and not only just now."""
    is_lasting = isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
    is_lasting = is_lasting or (isinstance(error, OSError) and error.errno == errno.ENOEXEC)
    return (NotStartable if is_lasting else PulseError)(start_error(program, cwd, error))


def start_error(program: str, cwd: str | None, error: OSError | ValueError) -> str:
    """Why the program could not be started, with what to change."""
    start = f"cannot start {program!r}: "
    if not isinstance(error, OSError) or error.errno is None:
        return f"{start}{error}"
    if cwd is not None and error.filename == cwd:
        return f"{start}its working directory {cwd!r} cannot be entered ({error.strerror})"
    if error.filename == "":
        return f"{start}{error.strerror}"
    if isinstance(error, FileNotFoundError) and os.path.lexists(program):
        return f"{start}the file is there, but the interpreter it names is not"
    if isinstance(error, FileNotFoundError) and "/" in program:
        return f"{start}there is no such file; give the path of a program"
    if isinstance(error, FileNotFoundError):
        return f"{start}there is no such program in PATH; give its full path"
    if isinstance(error, PermissionError):
        return f"{start}it may not be executed; make it executable for the user that it runs as"
    if error.errno == errno.ENOEXEC:
        return f"{start}it is no program; a script needs a first line such as #!/bin/sh"
    return f"{start}{error.strerror or os.strerror(error.errno)}"
