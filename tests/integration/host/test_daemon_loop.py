"""A loop that stood still gives everybody the time that they were promised."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from pulse_adapters.host.daemon_loop import daemon_loop
from tests.processes import child_of_test

LISTENER = """
import asyncio, sys
from pulse_adapters.host.daemon_loop import daemon_loop

async def main():
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    loop.add_reader(0, lambda: sys.stdin.buffer.read1() and (heard.set(), loop.remove_reader(0)))
    loop.call_later(0.2, lambda: print("listens", flush=True))
    try:
        async with asyncio.timeout(2):
            await heard.wait()
        print("heard")
    except TimeoutError:
        print("said nothing")

with asyncio.Runner(loop_factory=daemon_loop) as runner:
    runner.run(main())
"""


def test_who_answered_while_the_loop_was_suspended_is_heard() -> None:
    command = [sys.executable, "-c", LISTENER]
    begun = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child_of_test(begun) as child:
        assert child.stdin
        assert child.stdout
        assert child.stdout.readline() == "listens\n"
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(3)
        child.stdin.write("answer\n")
        child.stdin.flush()
        os.kill(child.pid, signal.SIGCONT)
        assert child.stdout.readline() == "heard\n"


class Machine:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_turn_that_takes_long_is_no_time_in_which_the_loop_listened() -> None:
    machine = Machine()
    loop = daemon_loop(machine)
    began = loop.time()
    for seconds in (60.0, 0.5):
        loop.call_soon(setattr, machine, "now", machine.now + seconds)
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
    assert loop.time() - began == pytest.approx(0.5)
    loop.close()


def test_time_goes_on_while_the_loop_listens() -> None:
    with asyncio.Runner(loop_factory=daemon_loop) as runner:
        loop, began = runner.get_loop(), time.monotonic()
        then = loop.time()
        runner.run(asyncio.sleep(1.5))  # longer than it waits at a time
        assert loop.time() - then == pytest.approx(time.monotonic() - began, abs=0.01)
