"""Daemons as forks of one process that has imported all of theirs: two thirds of a start's CPU are imports.

The process is begun with the first of them and ends with the run; each daemon is a process like any other, with an
environment, a folder, ignored signals and an output of its own. Where the interpreter's own start is the subject (what is
imported, what is inherited), a daemon is executed.

A daemon has its whole log read by a process of its own, soon after its start, which takes as long as a command. Of those
that are forked only the ones do that at once whose test is about it.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

SERVE = "upulse_cli.serve"
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_LARGEST = 1 << 20
_LOG_READ_S = 20.0
"""Seconds until a daemon reads its whole log that need not do it at once: most tests are over by then."""
_CHECKOUT = Path(__file__).parents[1]


class ForkedDaemon:
    """A daemon, as `subprocess.Popen` would show it."""

    def __init__(self, pid: int, end: int) -> None:
        self.pid, self._end = pid, end
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        """Its exit code, once it has ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(SERVE, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], timeout)[0]:
            told = os.read(self._end, 16)
            assert told, "the process that forks daemons has ended"
            self.returncode = int(told)
            os.close(self._end)
        return self.returncode


def start(
    words: Sequence[str],
    env: Mapping[str, str],
    output: int,
    module: str = SERVE,
    *,
    reads_log: bool = False,
) -> ForkedDaemon:
    """A daemon with these words on its command line. output: the descriptor that takes what it says.

    reads_log: whether it reads its whole log as soon as others do.
    """
    ignored = [number for number in _IGNORED if signal.getsignal(number) is signal.SIG_IGN]
    told = {"module": module, "words": words, "env": dict(env), "ignored": ignored, "reads_log": reads_log}
    request = json.dumps(told).encode()
    ours, theirs = os.pipe()
    if _forker().process.poll() is not None:  # a test has killed more than its own: the next need not fail
        _forker().connection.close()
        _forker.cache_clear()
    forker = _forker().connection
    socket.send_fds(forker, [request], [output, theirs])
    os.close(theirs)
    pid = forker.recv(16)
    assert pid, "the process that forks daemons has ended"
    return ForkedDaemon(int(pid), ours)


class _Forker(NamedTuple):
    """The process that forks, which ends when the connection to it does."""

    connection: socket.socket
    process: "subprocess.Popen[bytes]"


@cache
def _forker() -> _Forker:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-m", "tests.forked_daemons"]
    with theirs:
        process = subprocess.Popen(argv, cwd=_CHECKOUT, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    atexit.register(_end, made := _Forker(ours, process))
    return made


def _end(forker: _Forker) -> None:
    """End it with the run, so that nothing is left open."""
    forker.connection.close()
    forker.process.kill()
    forker.process.wait(60)


def _serve(connection: socket.socket) -> int:
    """Fork a daemon for each request, and tell how each ends; the exit code of a daemon in its own process."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ends: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 64)
            _tell_ends(ends)
        if connection.fileno() not in ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 2)
        if not request:
            return 0
        output, end = descriptors
        if not (pid := os.fork()):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (woken, wakes, end, *ends.values()):
                os.close(one)
            connection.close()
            return _live(json.loads(request), output)
        ends[pid] = end
        os.close(output)
        connection.send(str(pid).encode())


def _tell_ends(ends: dict[int, int]) -> None:
    """Tell of the children that have ended, and reap them then: until it is told, nobody else has such a pid."""
    while ends and (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
        by_signal = ended.si_code != os.CLD_EXITED
        with suppress(BrokenPipeError):  # nobody asks
            os.write(ends[ended.si_pid], str(-ended.si_status if by_signal else ended.si_status).encode())
        os.close(ends.pop(ended.si_pid))
        os.waitpid(ended.si_pid, 0)


def _live(request: Mapping[str, Any], output: int) -> int:
    """Be the daemon that is asked for; its exit code."""
    null = os.open(os.devnull, os.O_RDONLY)
    for number, one in enumerate((null, output, output)):
        os.dup2(one, number)
    os.close(null)
    os.close(output)
    os.chdir("/")
    os.environ.clear()
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in request["ignored"]:
        signal.signal(ignored, signal.SIG_IGN)
    if not request["reads_log"]:
        from pulse_core.daemon import services  # not before `block_in_daemon`

        services.DELAY = _LOG_READ_S
    sys.argv[1:] = request["words"]
    return int(importlib.import_module(request["module"]).main())


if __name__ == "__main__":
    from upulse_cli.blocked_imports import block_in_daemon

    block_in_daemon()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the run
    gc.disable()  # as a daemon does until it is up
    importlib.import_module(SERVE)
    sys.exit(_serve(socket.socket(fileno=os.dup(0))))
