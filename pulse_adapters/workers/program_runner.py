"""Runs programs that end by themselves, as another user if need be, and has what they print."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.workers.drop_privileges import become_unwaited
from pulse_adapters.workers.priority import give_up_priority
from pulse_adapters.workers.spawn import ProcessUser, reach_program
from pulse_core.model.errors import PulseError
from pulse_core.model.text import format_size

MOST = 16 << 20
"""Bytes that a program may print: what lies in a repository decides what git says, and what its filters do."""
_CHUNK = 64 << 10


class ProgramResult(NamedTuple):
    """How a program ended, and what it printed on stdout and stderr."""

    code: int
    said: bytes
    complained: bytes


class ProgramRunner:
    """Runs programs one after the other. Blocks: for threads.

    What is run may take as long as it likes, as a git filter that asks a server: `close` ends it.
    """

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def close(self) -> None:
        """Kill the program that runs, with all that it has begun, and begin none any more. From any thread."""
        self._is_closed = True
        if (running := self._running) and running.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)

    def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        user: ProcessUser | None,
        seconds: float,
        cwd: Path | str | None = None,
    ) -> ProgramResult:
        """Run this to its end. Raises OSError, TimeoutExpired, and PulseError once this is closed, or it prints too much."""
        if user:  # what can't be executed is only an exit then
            reach_program(argv[0], env, str(cwd) if cwd else None, True, user)
        with subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            group=user and user.gid, extra_groups=user and user.groups, start_new_session=True,
            preexec_fn=partial(become_unwaited, user.uid) if user else None,
        ) as self._running:  # fmt: skip
            give_up_priority(self._running.pid)
            try:
                if self._is_closed:
                    raise PulseError("it was called off")
                said, complained = _printed(self._running, argv[0], seconds)
            except BaseException:
                self.close()
                raise
        return ProgramResult(self._running.returncode, said, complained)


def _printed(running: "subprocess.Popen[bytes]", name: str, seconds: float) -> tuple[bytes, bytes]:
    """What it prints on stdout and stderr until it ends. Raises TimeoutExpired, and PulseError if that is too much."""
    assert running.stdout
    assert running.stderr
    until, printed = time.monotonic() + seconds, {running.stdout: bytearray(), running.stderr: bytearray()}
    with selectors.PollSelector() as pipes:  # which takes no descriptor
        for pipe, content in printed.items():
            pipes.register(pipe, selectors.EVENT_READ, content)
        while pipes.get_map():
            if (left := until - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired(name, seconds)
            for key, _ in pipes.select(left):
                if not (chunk := os.read(key.fd, _CHUNK)):
                    pipes.unregister(key.fileobj)
                key.data.extend(chunk)
            if sum(map(len, printed.values())) > MOST:
                raise PulseError(f"{name} printed more than {format_size(MOST)}, and was ended")
    running.wait(max(0.0, until - time.monotonic()))
    return bytes(printed[running.stdout]), bytes(printed[running.stderr])


def ask_program(
    argv: Sequence[str], env: Mapping[str, str], user: ProcessUser | None, seconds: float
) -> tuple[int | None, str]:
    """The exit code of a program and what it says; if that is nothing, what it complains about. No code: why it has none."""
    try:
        code, said, complained = ProgramRunner().run(argv, env, user, seconds, user and "/")
    except subprocess.TimeoutExpired:
        return None, f"it does not answer within {seconds:g} s"
    except OSError as error:
        return None, error.strerror or str(error)
    except PulseError as error:
        return None, str(error)
    return code, (said.strip() or complained.strip()).decode(errors="replace")
