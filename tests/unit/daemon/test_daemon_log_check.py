"""Checks in the background: of the whole log, again and again, and of the engine's repository; no loop ever returns."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.log import MemoryLog
from pulse_core.daemon.services import LogCheck, Verify, check_log, watch_repository
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import EnginePromoted, LogVerified, SettingsLoaded
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.record.view import View

DAY = 86_400


def verdicts(*faults: str, is_accepted: bool = False) -> Verify:
    """What the readings of the log find, one after the other."""
    left = list(faults)

    async def verify() -> LogCheck:
        return LogCheck(LogVerified(rows=3, took_ms=1, fault=left.pop(0) if left else ""), is_accepted)

    return verify


async def failing() -> LogCheck:
    raise PulseError("the child was killed")


def lived(
    seconds: float, work: Callable[[MemoryLog, View, list[str]], Awaitable[None]]
) -> tuple[MemoryLog, list[str]]:
    """The log, and what was reported, after so much time with this at work."""
    said = list[str]()
    with asyncio.Runner(loop_factory=virtual_loop) as runner:
        log, view = MemoryLog(VirtualClock(runner.get_loop().time)), View()
        log.listen(view.on_events)

        async def live() -> None:
            working = asyncio.ensure_future(work(log, view, said))
            done, _ = await asyncio.wait([working], timeout=seconds)
            assert not done
            working.cancel()
            await asyncio.wait([working])

        runner.run(live())
    return log, said


@pytest.mark.parametrize(("every", "times"), [(0, 1), (DAY * US_PER_SECOND, 4)])
def test_the_log_is_read_soon_and_then_again_and_again(every: int, times: int) -> None:
    log, _ = lived(
        3.5 * DAY,
        lambda log, view, said: check_log(log, view, asyncio.Event(), verdicts(), lambda *words: None, every),
    )
    assert [event.kind for event in log.events] == ["log-verified"] * times


def test_damage_is_a_condition_until_it_is_gone() -> None:
    verify = verdicts("row 3 was altered", "row 3 was altered")
    log, _ = lived(
        2.5 * DAY,
        lambda log, view, said: check_log(
            log, view, asyncio.Event(), verify, lambda *words: None, DAY * US_PER_SECOND
        ),
    )
    told = [event for event in log.events if event.kind != "log-verified"]
    assert [(event.kind, event.subject) for event in told] == [
        ("condition-raised", "log-damaged"),
        ("condition-cleared", "log-damaged"),
    ]
    assert "row 3 was altered" in told[0].data


def test_damage_that_was_accepted_is_recorded_and_troubles_nobody() -> None:
    log, _ = lived(
        DAY,
        lambda log, view, said: check_log(
            log,
            view,
            asyncio.Event(),
            verdicts("row 3 was altered", is_accepted=True),
            lambda *words: None,
            0,
        ),
    )
    assert [event.kind for event in log.events] == ["log-verified"]


@pytest.mark.parametrize("every", [0, DAY * US_PER_SECOND])
def test_a_log_that_is_doubted_is_read_again_at_once(every: int) -> None:
    async def work(log: MemoryLog, view: View, said: list[str]) -> None:
        asyncio.get_running_loop().call_later(100, (doubted := asyncio.Event()).set)
        await check_log(log, view, doubted, verdicts("", "row 3 was altered"), lambda *words: None, every)

    log, _ = lived(200, work)
    assert [event.kind for event in log.events] == ["log-verified", "log-verified", "condition-raised"]


def test_a_check_that_fails_is_reported_and_tried_again() -> None:
    log, said = lived(
        1.5 * DAY,
        lambda log, view, said: check_log(
            log,
            view,
            asyncio.Event(),
            failing,
            lambda *words: said.append(": ".join(words)),
            DAY * US_PER_SECOND,
        ),
    )
    assert log.events == []
    assert said == ["deep check: the log could not be verified: the child was killed"] * 2


def test_a_repository_that_is_gone_is_an_error_and_a_condition() -> None:
    there, looks = [True], list[bool]()

    async def look(commit: str, thorough: bool) -> str:
        looks.append(thorough)
        return "" if there[0] else f"{commit} is in force, and engine/.git is gone"

    async def work(log: MemoryLog, view: View, said: list[str]) -> None:
        await log.append(Draft(EnginePromoted(previous="", watch_us=1), subject="abc"))
        asyncio.get_running_loop().call_later(100, there.__setitem__, 0, False)
        asyncio.get_running_loop().call_later(400, there.__setitem__, 0, True)
        await watch_repository(log, view, look, lambda *words: said.append(": ".join(words)))

    log, said = lived(600, work)
    assert said == ["engine: abc is in force, and engine/.git is gone"]
    told = [(event.kind, event.subject) for event in log.events[1:]]
    assert told == [("condition-raised", "engine-missing"), ("condition-cleared", "engine-missing")]
    assert (log.events[1].at - log.events[0].at) / US_PER_SECOND == 105
    assert looks[0]  # and as long as something is wrong
    assert not any(looks[1:8])
    assert all(looks[8:27])
    assert not any(looks[28:])


def test_a_repository_is_read_whole_at_a_reload_and_now_and_then() -> None:
    looks = list[bool]()

    async def look(commit: str, thorough: bool) -> str:
        looks.append(thorough)
        if len(looks) == 1:
            raise PulseError("git did not end")
        return "git fsck: missing blob" if thorough else ""

    async def work(log: MemoryLog, view: View, said: list[str]) -> None:
        await log.append(Draft(EnginePromoted(previous="", watch_us=1), subject="abc"))
        reload = log.append(Draft(SettingsLoaded(digest="d")))
        asyncio.get_running_loop().call_later(20, asyncio.ensure_future, reload)
        await watch_repository(log, view, look, lambda *words: said.append(": ".join(words)))

    _, said = lived(25, work)
    assert looks == [True, True, True]  # tried again after one that failed, and at the reload
    assert said == ["engine: git fsck: missing blob"]


def test_one_who_watches_the_repository_is_told_no_more_once_that_has_ended() -> None:
    told = list[int]()

    async def look(commit: str, thorough: bool) -> str:
        raise ValueError("what nobody thought of")

    async def work(log: MemoryLog, view: View, said: list[str]) -> None:
        await log.append(Draft(EnginePromoted(previous="", watch_us=1), subject="abc"))
        for _ in range(3):  # as a loop that is begun again
            with pytest.raises(ValueError, match="what nobody thought of"):
                await watch_repository(log, view, look, lambda *words: None)
            told.append(len(vars(log)["_listeners"]))
        await asyncio.sleep(60)

    lived(25, work)
    assert told == [1, 1, 1]  # the view
