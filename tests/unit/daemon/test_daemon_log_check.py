"""The check of the whole log in the background: what it finds is recorded, and the loop never returns."""

import asyncio
import time

import pytest

from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.daemon import services
from pulse_core.daemon.services import check_log
from pulse_core.model.errors import PulseError
from pulse_core.model.kinds import LogVerified


async def sound() -> LogVerified:
    return LogVerified(rows=3, took_ms=1, fault="")


async def failing() -> LogVerified:
    raise PulseError("the child was killed")


@pytest.mark.parametrize(("verify", "recorded"), [(sound, ["log-verified"]), (failing, [])])
async def test_it_records_what_was_found_and_goes_on_waiting(
    monkeypatch: pytest.MonkeyPatch, verify: services.Verify, recorded: list[str]
) -> None:
    monkeypatch.setattr(services, "DELAY", 0.0)
    log = MemoryLog(VirtualClock(time.monotonic))
    checking = asyncio.create_task(check_log(log, verify))
    done, _ = await asyncio.wait([checking], timeout=0.2)
    assert not done
    assert [event.kind for event in log.events] == recorded
    checking.cancel()
    await asyncio.wait([checking])
