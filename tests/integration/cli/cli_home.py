"""A home and its command line, in this process or as a process of its own."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.proc import start_time_of
from pulse_core.model.errors import PulseError
from tests import forked_daemons
from tests.json_answers import check_json
from tests.processes import pauses
from upulse_cli.__main__ import main

T = TypeVar("T")
UPULSE = (sys.executable, "-m", "upulse_cli")
PATIENCE = 60.0
ALLOW = '[executors.run-command]\nallow = ["/bin/true", "/bin/false", "/bin/sleep"]\n'
AT_ONCE = 'restart = { max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }\n'


def sleeper(name: str, seconds: int) -> str:
    """Settings of a guarded process that does nothing."""
    return f'[[process]]\nname = "{name}"\nstart = ["sleep", "{seconds}"]\n{AT_ONCE}'


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CliHome:
    """Runs commands on one home."""

    path: Path

    def upulse(self, *words: str, code: int | None = 0) -> Said:
        """The command in this process, which takes a twentieth of the time of one of its own."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            found = main([*words, "--home", str(self.path)])
        assert code in (found, None), f"{found}\n{out.getvalue()}\n{err.getvalue()}"
        check_json(words, out.getvalue())
        return Said(found, out.getvalue(), err.getvalue())

    def as_process(self, *words: str, code: int = 0) -> Said:
        """The command as a process of its own."""
        argv = [*UPULSE, *words, "--home", str(self.path)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        check_json(words, done.stdout)
        return Said(done.returncode, done.stdout, done.stderr)

    def start_daemon(self, *options: str, reads_log: bool = False) -> None:
        """A daemon in the background, as by `upulse daemon start`, for what is not about that command.

        reads_log: whether it reads its whole log soon.
        """
        words = ("--home", str(self.path), "--background", *options)
        with open(os.devnull, "wb") as nowhere:
            env = inherited_environment()
            daemon = forked_daemons.start(words, env, nowhere.fileno(), reads_log=reads_log)

        def is_ready() -> bool:
            assert daemon.poll() is None, Home(self.path).daemon_log.read_text()
            with suppress(PulseError), Client(Home(self.path).socket, timeout=PATIENCE) as client:
                return bool(client.ask("status")["daemon"]["state"] != "starting")
            return False

        eventually(is_ready, "the daemon to be ready")

    def configure(self, *parts: str) -> None:
        (self.path / "config.toml").write_text("\n".join(parts))

    def status(self) -> dict[str, Any]:
        return dict(self.upulse("status", "--json").json)

    def process(self, name: str) -> dict[str, Any]:
        return next(found for found in self.status()["processes"] if found["name"] == name)

    def pid_when_up(self, name: str, other_than: int | None = None) -> int:
        def seen() -> int | None:
            found = self.process(name)
            return found["pid"] if found["state"] == "up" and found["pid"] != other_than else None

        return eventually(seen, f"{name} to be up")

    def end_everything(self) -> None:
        """Kill the daemon and what it guards, by their ids: also what a daemon that was stopped has left running."""
        standing = self.status()
        for found in (standing["daemon"], *standing["processes"]):
            if found["pid"]:
                with suppress(ProcessLookupError):
                    os.kill(found["pid"], signal.SIGKILL)
        if (told := self.upulse("state", "processes", code=None)).code == 0:
            for known in told.json["of"].values():
                if known["pid"] and start_time_of(known["pid"]) == known["started"]:
                    os.kill(known["pid"], signal.SIGKILL)


def eventually(look: Callable[[], T | None], what: str) -> T:
    """What `look` sees at last."""
    until, pause = time.monotonic() + PATIENCE, pauses()
    while not (seen := look()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(next(pause))
    return seen


def is_id(text: str) -> bool:
    """Whether it is a UUID."""
    return re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", text) is not None
