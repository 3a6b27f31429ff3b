"""The check of the whole log beside the loops."""

import asyncio

import pytest

from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.daemon import log_check
from pulse_core.model.kinds import LogVerified


@pytest.mark.parametrize("fault", [None, OSError("no child")])
async def test_it_stays_when_it_is_done_since_a_loop_that_returns_ends_the_daemon(
    monkeypatch: pytest.MonkeyPatch, fault: OSError | None
) -> None:
    monkeypatch.setattr(log_check, "AFTER", 0.0)
    asked = asyncio.Event()

    async def verify() -> LogVerified:
        asked.set()
        if fault:
            raise fault
        return LogVerified(rows=0, took_ms=1)

    check = asyncio.create_task(log_check.check_log(MemoryLog(VirtualClock()), verify))
    await asyncio.wait_for(asked.wait(), 5)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not check.done()
    check.cancel()
    await asyncio.wait([check])
