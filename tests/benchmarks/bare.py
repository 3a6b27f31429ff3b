"""The reflex without Pulse: what the kernel, the disk and Popen cost on their own."""

import os
import random
import select
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

from tests.benchmarks.harness import ROW


def victim() -> list[str]:
    """An argv that no other process has."""
    return ["sleep", f"{8_000_000 + os.getpid()}.{random.randrange(10_000)}"]


class Bare:
    """The same without Pulse: a victim held by a pidfd, and a log that is one table."""

    def __init__(self, log: sqlite3.Connection) -> None:
        self.log = log
        self.argv = victim()
        self.child = self._spawned()
        self.without: list[float] = []
        self.with_commits: list[float] = []

    def _spawned(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, start_new_session=True)

    def rest_and_kill(self, commits: int) -> None:
        """One kill after a pause; what it took, with so many commits between, is kept in milliseconds."""
        time.sleep(random.uniform(0.03, 0.06))
        handle = os.pidfd_open(self.child.pid)
        with closing(select.epoll()) as death:
            death.register(handle)
            began = time.perf_counter()
            os.kill(self.child.pid, signal.SIGKILL)
            death.poll()
            self.child.wait()
            for _ in range(commits):
                self.log.execute("INSERT INTO event (data) VALUES (?)", (ROW,))
            self.child = self._spawned()
            took = (time.perf_counter() - began) * 1000
        os.close(handle)
        (self.with_commits if commits else self.without).append(took)

    def close(self) -> None:
        """End the last one."""
        self.child.kill()
        self.child.wait()
