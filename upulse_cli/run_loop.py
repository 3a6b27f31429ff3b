"""Runs what goes on until a person ends it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NoReturn


def run_until_ended(work: Coroutine[Any, Any, Any], quits: bool = False) -> None:
    """Run it until it is told to end: by SIGTERM, or by q if `quits`. Ctrl-C leaves as a KeyboardInterrupt."""

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        if quits:
            loop.add_reader(sys.stdin, lambda: q_pressed() and task.cancel())
        await work

    with suppress(asyncio.CancelledError):
        asyncio.run(main())


def run_on_stdio(work: Coroutine[Any, Any, Any], at_end: Callable[[], None]) -> None:
    """Run what answers on stdout until stdin ends, or who reads the answers is gone, or SIGTERM or SIGINT comes.

    Then `at_end` is called. A signal ends the process there: a thread may read stdin, which nothing breaks off.
    """

    def end(number: int, _frame: object) -> NoReturn:
        at_end()
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        asyncio.run(work)
    except* BrokenPipeError:
        pass
    finally:
        at_end()


def q_pressed() -> bool:
    """Whether the key was q, or the terminal is gone."""
    return os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b"")
