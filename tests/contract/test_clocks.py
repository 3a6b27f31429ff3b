"""What every clock promises: the machine's, and one in virtual time."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_core.model.moment import Moment
from pulse_core.ports.clock import Clock


@dataclass
class Time:
    """A clock, and the loop in which one waits for it."""

    clock: Clock
    loop: asyncio.AbstractEventLoop

    def after(self, seconds: float) -> Moment:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return self.clock.now()


@pytest.fixture(params=["system", "virtual"])
def timed(request: pytest.FixtureRequest) -> Iterator[Time]:
    is_virtual = request.param == "virtual"
    loop = virtual_loop() if is_virtual else asyncio.new_event_loop()
    yield Time(VirtualClock(loop.time) if is_virtual else SystemClock(), loop)
    loop.close()


def test_both_times_go_on_by_the_microseconds_that_were_waited_for(timed: Time) -> None:
    began, ended = timed.after(0), timed.after(0.05)
    assert 50_000 <= ended.mono - began.mono < 30_000_000
    assert ended.at > began.at
    assert began.at > 1_700_000_000_000_000
    assert began.boot == ended.boot != ""


def test_time_since_the_boot_never_goes_back(timed: Time) -> None:
    monos = [timed.after(0).mono for _ in range(200)]
    assert monos == sorted(monos)
    assert monos[0] >= 0
