"""One life of the probing child, as the daemon sees it: lines go out, lines come back, and it is reaped when it dies."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

ARGV = (sys.executable, "-P", "-m", "pulse_adapters.network.probe")
LAST_S = 1.0
_CHUNK = 65536


class Child:
    """A running child. said is called with each line of it, gone once when there will be no more. Raises OSError."""

    def __init__(self, said: Callable[[bytes], None], gone: Callable[[], None]) -> None:
        self._said, self._gone = said, gone
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        with theirs:
            try:
                self.pid, self._handle = _started(theirs.fileno())
            except OSError:
                self._channel.close()
                raise
        self._loop.add_reader(self._channel.fileno(), self._read)
        self._loop.add_reader(self._handle, self._reap)

    def send(self, line: bytes) -> bool:
        """Send a line; False if it does not read any more."""
        try:
            return self._channel.send(line) == len(line)
        except OSError:
            return False

    def _read(self) -> None:
        try:
            chunk = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.end()
            self._gone()
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._said(line)

    def end(self) -> None:
        """Kill it, if it lives; it says nothing more."""
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel.fileno())
            self._channel.close()
        if self._handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    @property
    def is_ours(self) -> bool:
        """Whether its death was not seen yet."""
        return self._handle >= 0

    def _reap(self) -> None:
        with suppress(ChildProcessError):  # reaped by somebody else in this process
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG) is None:
                return
        self._forget()

    def _forget(self) -> None:
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def close(self) -> None:
        """Kill it, and see it dead if that takes no longer than a second; else init will."""
        self.end()
        if self.is_ours:
            death = select.poll()
            death.register(self._handle, select.POLLIN)
            death.poll(LAST_S * 1000)
            self._reap()
            self._forget()


def _started(channel: int) -> tuple[int, int]:
    child = subprocess.Popen(
        ARGV,
        stdin=channel,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal is meant for the daemon
    )
    try:
        handle = os.pidfd_open(child.pid)
    except OSError:
        child.kill()
        child.wait()
        raise
    child.returncode = 0  # it is waited for by its pidfd
    return child.pid, handle
