"""Waiting for child processes by pidfd: no thread, no SIGCHLD handler, no zombie."""

import asyncio
import os
import signal

REMEMBERED = 256


class Children:
    """Reaps each child as soon as it dies. Children outlive it: `close` only stops waiting for them."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, asyncio.Future[int]]] = {}
        self._ended: dict[int, int] = {}
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel throws exit codes away

    def __contains__(self, pid: int) -> bool:
        return pid in self._waiting

    def adopt(self, pid: int) -> asyncio.Future[int]:
        """Wait for this child from now on; the future is its exit code, negative for a signal."""
        loop = asyncio.get_running_loop()
        handle = os.pidfd_open(pid)
        self._ended.pop(pid, None)
        self._waiting[pid] = handle, loop.create_future()
        loop.add_reader(handle, self._reap, pid)
        return self._waiting[pid][1]

    def _reap(self, pid: int) -> None:
        try:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            code = -1  # reaped by somebody else in this process
        else:
            if ended is None:
                return
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        exited = self._forget(pid)
        self._ended[pid] = code
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if not exited.done():
            exited.set_result(code)

    def _forget(self, pid: int) -> asyncio.Future[int]:
        handle, exited = self._waiting.pop(pid)
        exited.get_loop().remove_reader(handle)
        os.close(handle)
        return exited

    def kill(self, pid: int) -> None:
        """SIGKILL a child that is waited for here; it is not reaped yet, so no other process can have its pid."""
        if pid in self._waiting:
            os.kill(pid, signal.SIGKILL)

    def exit_code(self, pid: int) -> int | None:
        """The exit code of the last child with this pid, if it ended recently."""
        return self._ended.get(pid)

    def close(self) -> None:
        """Stop waiting; children that still run go on and are reaped by init."""
        for pid in list(self._waiting):
            self._reap(pid)
        for pid in list(self._waiting):
            self._forget(pid).cancel()
