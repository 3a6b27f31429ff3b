"""A real daemon on a home of its own, driven through its socket, and ended whatever happens."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_core.model.errors import PulseError
from tests import forked_daemons
from tests.forked_daemons import ForkedDaemon
from tests.processes import pauses


class Served:
    """A home, its daemon, and words with it.

    is_forked: False has the daemon executed, by an interpreter of its own; reads_log: a forked one reads its whole log soon.
    """

    def __init__(self, path: Path) -> None:
        self.home = Home(path)
        self.mark = f"UPULSE_TEST={path}"
        self.python = sys.executable
        self.said = path / "daemon.out"
        self.is_forked, self.reads_log = True, False
        self.daemon: subprocess.Popen[bytes] | ForkedDaemon | None = None

    def configure(self, text: str) -> None:
        self.home.create()
        self.home.config.write_text(text or "# the defaults\n")

    def start(self, *options: str) -> "Served":
        name, _, value = self.mark.partition("=")
        words, env = ["--home", str(self.home.path), *options], {**os.environ, name: value}
        with self.said.open("ab") as log:
            if self.is_forked and self.python == sys.executable:
                self.daemon = forked_daemons.start(words, env, log.fileno(), reads_log=self.reads_log)
            else:
                argv = [self.python, "-m", forked_daemons.SERVE, *words]
                self.daemon = subprocess.Popen(
                    argv, cwd="/", env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
        self.eventually(self.answers, "the daemon answers")
        return self

    def answers(self) -> bool:
        with contextlib.suppress(PulseError):
            return bool(self.status())
        return False

    def status(self) -> dict[str, Any]:
        with Client(self.home.socket, timeout=60) as client:
            return client.ask("status")

    def process(self, name: str) -> dict[str, Any]:
        return next(one for one in self.status()["processes"] if one["name"] == name)

    def append(self, kind: str, subject: str = "", **data: Any) -> dict[str, Any]:
        with Client(self.home.socket, timeout=60) as client:
            answer = client.ask("append", drafts=[{"kind": kind, "subject": subject, "data": data}])
        return dict(answer["events"][0])

    def pid_when_up(self, name: str, other_than: int = 0) -> int:
        def seen() -> int | None:
            one = self.process(name)
            return one["pid"] if one["state"] == "up" and one["pid"] != other_than else None

        return int(self.eventually(seen, f"{name} is up"))

    def eventually(self, holds: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """What `holds` says once it says something."""
        until, pause = time.monotonic() + seconds, pauses()
        while not (seen := holds()):
            assert self.daemon is None or self.daemon.poll() is None, self.said.read_text()
            assert time.monotonic() < until, f"never seen: {what}"
            time.sleep(next(pause))
        return seen

    def kill(self) -> None:
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait(timeout=60)

    def stop(self) -> int:
        assert self.daemon is not None
        self.daemon.terminate()
        return self.daemon.wait(60)

    def close(self) -> None:
        if self.daemon and self.daemon.poll() is None:
            self.kill()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path / "home")
    try:
        yield one
    finally:
        one.close()
