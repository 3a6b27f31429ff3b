"""How a new process is begun: the quickest way that can do what is asked."""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores for itself, and a new process must not."""


def begun(program: str, argv: Sequence[str], env: Mapping[str, str], output: int, cwd: str | None) -> int:
    """The pid of a new process in a session of its own; raises OSError or ValueError.

    posix_spawn takes half as long as Popen, but knows of no working directory.
    """
    if cwd is None:
        return _spawned(program, argv, env, output)
    return _opened(program, argv, env, output, cwd)


def looked_up(program: str, env: Mapping[str, str]) -> str:
    """The program's path, looked for in the PATH that it will have; raises FileNotFoundError."""
    if "/" in program:
        return program
    for directory in env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, program)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _spawned(program: str, argv: Sequence[str], env: Mapping[str, str], output: int) -> int:
    """Start it by posix_spawn, which says as well as Popen what went wrong.

    What this process has opened is closed at exec by itself; `closed_at_exec` sees to what it has inherited.
    """
    return os.posix_spawn(
        program,
        list(argv),
        env,
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ),
        setsid=True,
        setsigdef=IGNORED_BY_PYTHON,
    )


def _opened(program: str, argv: Sequence[str], env: Mapping[str, str], output: int, cwd: str) -> int:
    """Start it by Popen, since posix_spawn knows of no working directory."""
    process = subprocess.Popen(
        list(argv), executable=program, cwd=cwd, env=env,
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
    )  # fmt: skip
    # Pulse waits by pidfd, and the process may outlive it: subprocess must neither wait nor complain.
    process.returncode = 0
    return process.pid


def closed_at_exec() -> None:
    """Have what this process inherited beyond stdin, stdout and stderr closed in what it starts."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the directory's own descriptor is gone by now
            if int(name) > 2:
                os.set_inheritable(int(name), False)
