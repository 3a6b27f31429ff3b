"""The courier: a child process for each message, which speaks to people's services and can be killed."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Sequence
from contextlib import suppress

from pulse_core.ports import OutgoingMessage

PATIENCE_S = 60.0
TO_END_IT_S = 2.0
PROGRAM = (sys.executable, "-P", "-m", "pulse_adapters.notify.deliver")
NOT_FOR_CHILDREN = (
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
)


class ChildTransport:
    """Implements `pulse_core.ports.Courier`; patience: seconds until a child that is not done is killed."""

    def __init__(self, patience: float = PATIENCE_S, program: Sequence[str] = PROGRAM) -> None:
        self._patience, self._program = patience, program

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        """Why each letter did not arrive, or nothing; those that arrived before a child died are known."""
        if not letters:
            return ()
        try:
            child = await self._born()
        except OSError as error:
            return [f"what delivers it cannot be started ({error.strerror})"] * len(letters)
        answers: dict[int, str] = {}
        try:
            async with asyncio.timeout(self._patience):
                why = await _spoken(child, order(letters, self._patience), answers)
        except TimeoutError:
            why = f"no answer within {self._patience:g} s"
        except ValueError:
            why = "what delivers it talks without end"
        finally:
            await _ended(child)
        return [answers.get(number, why) for number in range(len(letters))]

    async def _born(self) -> Process:
        environment = {name: text for name, text in os.environ.items() if name not in NOT_FOR_CHILDREN}
        return await asyncio.create_subprocess_exec(
            *self._program, stdin=PIPE, stdout=PIPE, stderr=STDOUT, env=environment, start_new_session=True
        )


def order(letters: Sequence[OutgoingMessage], patience: float) -> bytes:
    """What the child is told: the letters, and when to end itself if nobody is left to end it."""
    told = {"seconds": round(patience) + 5, "letters": [letter._asdict() for letter in letters]}
    return json.dumps(told).encode()


async def _spoken(child: Process, order: bytes, answers: dict[int, str]) -> str:
    """Tell the child what to do and take its answers as they come; what is to be said of those that don't."""
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it died already: then its end says more
        child.stdin.write(order)
        await child.stdin.drain()
        child.stdin.close()
    words = ""
    while said := await child.stdout.readline():
        try:
            number, error = json.loads(said)
            answers[int(number)] = str(error)
        except (ValueError, TypeError):
            words = said.decode(errors="replace").strip() or words
    return how(await child.wait(), words)


def how(code: int, words: str) -> str:
    """How a child ended that did not answer."""
    end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit {code}"
    return f"what delivers it {end}{f': {words[-300:]}' if words else ''}"


async def _ended(child: Process) -> None:
    """Kill the child, with all that it started, unless it has ended; and let go of its pipes."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(TO_END_IT_S):
            await child.communicate()
