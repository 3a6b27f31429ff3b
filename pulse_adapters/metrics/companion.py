"""The daemon's side of a child that works beside it: started, heard, written to, and ended with the daemon.

The child ends by itself when its standard input ends: so it goes even if the daemon was killed.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

PATIENCE_S = 2.0
_CHUNK = 4096
_LONGEST = 1 << 14
_MOST = 100
_NOT_FOR_CHILDREN = (
    *("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"),
    *("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM"),
)


class Companion:
    """A running child; made by `companion`. What it says comes as lines: complaints as JSON texts, and last words."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""
        environment = {name: text for name, text in os.environ.items() if name not in _NOT_FOR_CHILDREN}
        self._child = child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is meant for the daemon
        )
        assert child.stdin is not None
        assert child.stdout is not None
        self._input, self._output = child.stdin.fileno(), child.stdout.fileno()
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    async def line(self) -> str | None:
        """The next line that it says; None when there will be no more."""
        return await self._lines.get()

    def tell(self, line: str) -> bool:
        """Write a line to it; False if it does not read any more."""
        try:
            return os.write(self._input, line.encode() + b"\n") == len(line.encode()) + 1
        except OSError:
            return False

    def _read(self) -> None:
        try:
            chunk = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-_LONGEST:]
        for line in lines:
            if self._lines.qsize() < _MOST:  # nobody has to hear all that a raging child says
                self._lines.put_nowait(line.decode(errors="replace"))
        if not chunk:
            self._loop.remove_reader(self._output)
            self._lines.put_nowait(None)

    def _let_go(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._loop.remove_reader(self._output)
        self._child.stdout.close()
        with suppress(BrokenPipeError):
            self._child.stdin.close()

    async def close(self) -> None:
        """End its input, give it two seconds to go, then kill it."""
        self._let_go()
        if self._child.poll() is None and not await self._gone(PATIENCE_S):
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            await self._gone(PATIENCE_S)
        self._child.poll()

    @property
    def end(self) -> str:
        """How it ended, in words; only after it was closed."""
        code = self._child.returncode
        if code is None:
            return "cannot be ended"
        return f"ended with exit {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"

    async def _gone(self, seconds: float) -> bool:
        """Whether it ends within these seconds."""
        handle = os.pidfd_open(self._child.pid)
        ended = asyncio.Event()
        self._loop.add_reader(handle, ended.set)
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(handle)
            os.close(handle)


@asynccontextmanager
async def companion(*argv: str) -> AsyncIterator[Companion]:
    """A child for as long as one is inside. Raises OSError if it cannot be started."""
    child = Companion(argv)
    try:
        yield child
    finally:
        await child.close()
