"""A person at a prompt: one shell, one fresh home, and nothing of theirs left running afterwards."""

import io
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO
from unittest.mock import patch

from pulse_adapters.ipc import daemon_process
from tests import forked_daemons
from tests.docs.docs_console import Command
from tests.forked_daemons import ForkedDaemon
from tests.types_cache import warm
from upulse_cli.__main__ import main

PATIENCE = 60.0
LOOKS = ("upulse status", "upulse engine status", "upulse process list", "upulse events", "upulse why", "upulse effect list",
         "upulse effect show", "upulse daemon logs", "upulse agents worktrees", "ls ")  # fmt: skip
TAG = "UPULSE_DOCS_TEST"
PORT = "18080"
PLAIN = re.compile(r"(?:(?P<name>\w+)=\$\()?(?P<words>upulse [^|&;<>()`\n]*)(?(name)\))")
"""A command of nothing but words, which the shell may have to expand, and a variable that is set to what it prints."""


class Shell:
    """Types commands into a real bash. Whatever it starts bears a tag in its environment.

    Where its processes are not the subject, Pulse's own command line runs in this one, and its daemons are forks: that
    spares an interpreter for each.
    """

    def __init__(self, place: Path, cwd: Path | None = None, own_processes: bool = True) -> None:
        self.tag = str(uuid.uuid4())
        self.home = place / ".upulse"
        self._own_processes, self._now = own_processes, (str(self.home), str(cwd or place))
        self._daemons: list[ForkedDaemon] = []
        self.environment = environment(place, self.home, self.tag)
        self._port = free_port()
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd or place,
            env=self.environment,
        )

    def follow(self, command: Command) -> None:
        """Do what the page says, and hold it to what it shows; news may take a moment to be there."""
        if "promote" in command.text and self.home.exists():
            warm(self.home / "cache")
        until = time.monotonic() + PATIENCE
        while True:
            code, output = self.type(command.text)
            missing = self._on_our_port(command).missing(output)
            if not missing and code == command.exit:
                return
            if not command.text.startswith(LOOKS) or time.monotonic() > until:
                break
            time.sleep(0.3)  # a look may be a process of its own
        raise AssertionError(
            f"$ {command.text}\nexit {code}, promised {command.exit}; not shown: {missing}; said:\n{output}"
        )

    def type(self, text: str) -> tuple[int, str]:
        """Run one command in the shell; its exit code and all that it printed."""
        if not self._own_processes and (plain := PLAIN.fullmatch(text.partition(" #")[0].rstrip())):
            _, words = self._in_bash(f"printf '%s\\0' {plain['words'].replace(PORT, self._port)}")
            code, printed, said = self._in_this_process(
                words.split("\0")[1:-1], is_kept := bool(plain["name"])
            )
            if is_kept:
                self._in_bash(f"{plain['name']}={shlex.quote(printed.rstrip())}")
            return code, said
        return self._in_bash(text.replace(PORT, self._port))

    def _in_bash(self, text: str) -> tuple[int, str]:
        mark = f"done-{uuid.uuid4()}"
        line = f'{{ {text}\n}} </dev/null\nprintf \'\\n%s %s %s %s\\n\' {mark} $? "$UPULSE_HOME" "$PWD"\n'
        assert self._bash.stdin is not None
        self._bash.stdin.write(line.encode())
        self._bash.stdin.flush()
        output = self._read_until(mark)
        said, _, end = output.rpartition(f"\n{mark} ")
        code, *now = end.split()
        self._now = now[0], now[1]
        return int(code), said

    def close(self) -> None:
        """End the shell and everything that was started from it."""
        for daemon in self._daemons:
            daemon.kill()
        self._bash.kill()
        self._bash.communicate(timeout=60)
        end_tagged(self.tag)

    def _in_this_process(self, words: Sequence[str], is_kept: bool) -> tuple[int, str, str]:
        """The exit code, what it printed if that is kept, and all else that is to be seen."""
        said, (home, place) = io.StringIO(), self._now
        printed = io.StringIO() if is_kept else said
        with (
            patch.dict(os.environ, {**self.environment, "UPULSE_HOME": home}, clear=True),
            patch.object(daemon_process, "subprocess", SimpleNamespace(Popen=self._fork, DEVNULL=None)),
            chdir(place),
            redirect_stdout(printed),
            redirect_stderr(said),
        ):
            code = main([*words])
        return code, printed.getvalue() if is_kept else "", said.getvalue()

    def _fork(
        self, argv: Sequence[str], *, env: Mapping[str, str], stdout: IO[bytes], **_: object
    ) -> ForkedDaemon:
        """The daemon of these words, without an interpreter of its own."""
        words = argv[argv.index(forked_daemons.SERVE) + 1 :]
        self._daemons.append(forked_daemons.start(words, env, stdout.fileno()))
        return self._daemons[-1]

    def _on_our_port(self, command: Command) -> Command:
        return Command(command.text, tuple(line.replace(PORT, self._port) for line in command.shown))

    def _read_until(self, mark: str) -> str:
        assert self._bash.stdout is not None
        until, output = time.monotonic() + PATIENCE, b""
        while f"\n{mark} ".encode() not in output or not output.endswith(b"\n"):
            ready, _, _ = select.select([self._bash.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise AssertionError(f"no end within {PATIENCE:g} s; it said:\n{output.decode()}")
            if not (piece := os.read(self._bash.stdout.fileno(), 1 << 16)):
                raise AssertionError(f"the shell ended; it said:\n{output.decode()}")
            output += piece
        return output.decode()


def environment(place: Path, home: Path, tag: str) -> Mapping[str, str]:
    """A new user's: their own home directory, this interpreter's commands first, nothing of an outer make."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "UPULSE"))
    }
    programs = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, "HOME": str(place), "UPULSE_HOME": str(home), "PATH": programs, TAG: tag}


def free_port() -> str:
    """A port that nobody listens on, of as many digits as the one in the pages."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def end_tagged(tag: str) -> None:
    """Kill whatever bears the tag, until nothing is left; first the daemon, or it would bring others back."""
    wanted = f"{TAG}={tag}".encode()
    until = time.monotonic() + PATIENCE
    while found := sorted(bearers(wanted), key=lambda pid: b"upulse_cli" not in read(pid, "cmdline")):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < until, f"processes {found} do not end"
        time.sleep(0.01)


def bearers(wanted: bytes) -> list[int]:
    """Live processes with this variable in their environment."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return [pid for pid in pids if wanted in read(pid, "environ").split(b"\0")]


def read(pid: int, file: str) -> bytes:
    """A file of a process; nothing if it is gone or not ours."""
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""
