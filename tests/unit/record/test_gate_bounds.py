"""What a caller appends over the socket has the bounds that the command line keeps."""

import pytest

from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.log import MemoryLog
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused, ProcessStopRequested, PromoteRequested, RollbackRequested
from pulse_core.model.payload import Payload, Role
from pulse_core.record.gate import Gate
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded
from pulse_core.silences.rule import MOST

SETTINGS = Settings.model_validate({"process": [{"name": "gateway", "start": ["x"], "pid_file": "/x"}]})
DAY = 86_400_000_000


async def append(payload: Payload, subject: str) -> int:
    log, view = MemoryLog(VirtualClock(lambda: 0.0)), View()
    gate = Gate(log, view, lambda: SETTINGS, {}, log.clock)
    return len(await gate.append(Role.PERSON, "ada", [Draft(payload, subject)]))


async def test_no_more_silences_are_added_than_count_and_expired_ones_leave_room() -> None:
    now = [0.0]
    log, view = MemoryLog(VirtualClock(lambda: now[0])), View()
    log.listen(view.on_events)
    gate = Gate(log, view, lambda: SETTINGS, {}, log.clock)
    silences = [Draft(SilenceAdded(expires_us=1_000_000), "restart-process:*")] * 2
    for _ in range(MOST):
        await gate.append(Role.PERSON, "ada", silences[:1])
    with pytest.raises(Refused, match=f"{MOST} silences hold already; remove some first"):
        await gate.append(Role.PERSON, "ada", silences[:1])
    now[0] = 1.0
    with pytest.raises(Refused, match="twice at once"):
        await gate.append(Role.PERSON, "ada", silences)
    await gate.append(Role.PERSON, "ada", silences[:1])


@pytest.mark.parametrize(
    ("payload", "subject", "words"),
    [
        (SilenceAdded(expires_us=5), "[!" * 5_000, "no line of at most 500"),
        (SilenceAdded(expires_us=5), "", "0 characters"),
        (SilenceAdded(expires_us=5), "*a" * 100, "100 wildcards"),
        (SilenceAdded(expires_us=31 * DAY), "*", "at most 30d"),
        (SilenceAdded(expires_us=10**30), "*", "at most 30d"),
        (Paused(), "x" * 501, "no line"),
        (Paused(), "a\nb", "no line"),
        (ProcessStopRequested(expires_us=10**30), "gateway", "at most 3,650d"),
        (PromoteRequested(previous=""), "--upload-pack=x", "no commit"),
        (PromoteRequested(previous="--x"), "a1b2", "no commit"),
        (RollbackRequested(), "../x", "no commit"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(payload: Payload, subject: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        await append(payload, subject)


@pytest.mark.parametrize(
    ("payload", "subject"),
    [
        (SilenceAdded(expires_us=30 * DAY), "restart-process:*"),
        (Paused(), ""),
        (ProcessStopRequested(expires_us=DAY), "gateway"),
        (PromoteRequested(previous=""), "a1" * 20),
        (RollbackRequested(), ""),
    ],
)
async def test_what_is_within_bounds_is_recorded(payload: Payload, subject: str) -> None:
    assert await append(payload, subject) == 1
