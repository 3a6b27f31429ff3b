"""Processes that tests start and search for: each ends with its test, and nobody waits for one without a bound.

Who searches meets processes that end between two reads. They are not found; that is never an error.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import AnyStr

from pulse_adapters.workers.proc import command_line, live_processes

PATIENCE = 60.0
"""Seconds for what ends within one on an idle machine."""


def pauses() -> Iterator[float]:
    """Seconds between looks at what is to come: ever longer, since looking takes time from what is looked at."""
    pause = 0.01
    while True:
        yield pause
        pause = min(1.3 * pause, 0.15)


@contextmanager
def child_of_test(child: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """A process for the length of a block; whatever happened in there, it is reaped.

    At the end its pipes are closed. Who doesn't end by that is killed, and the test fails: `with Popen(…)` alone
    would wait for ever.
    """
    try:
        yield child
        _close(child)
        child.wait(PATIENCE)
    finally:
        child.kill()
        _close(child)
        child.wait(PATIENCE)


def _close(child: subprocess.Popen[AnyStr]) -> None:
    for pipe in (child.stdout, child.stderr, child.stdin):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def as_worker(*argv: str) -> list[str]:
    """A program that is given its standard input and output as the private descriptors of a worker, too."""
    return ["/bin/sh", "-c", 'exec "$@" 3>&1 6<&0', "sh", *argv]


def children(pid: int, argument: str = "") -> list[int]:
    """The live children of a process in whose command line a word contains `argument`."""
    return [
        one.pid
        for one in live_processes()
        if one.parent == pid and any(argument in word for word in command_line(one.pid))
    ]


TRACER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
print(libc.ptrace(16, pid, None, None), flush=True)  # PTRACE_ATTACH
os.waitpid(pid, 0)
os.kill(pid, 9)
sys.stdin.read()
"""
"""Traces the process of its argument, prints 0 then, kills it, and holds it dead until its stdin ends."""
