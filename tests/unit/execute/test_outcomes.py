"""Outcomes of effects: what ends together is one append, and one that can't be recorded keeps out no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from pulse_adapters.memory.log import MemoryLog
from pulse_core.execute.outcomes import OutcomeRecorder
from pulse_core.model.errors import LogUnavailable, Refused
from pulse_core.model.event import Draft
from pulse_core.model.kinds import EffectAcked
from pulse_core.model.moment import Moment
from pulse_core.record.journal import Journal


def acked(subject: str) -> Draft:
    return Draft(EffectAcked(took_us=1), subject)


class Standing:
    """A clock that stands still."""

    def now(self) -> Moment:
        return Moment(10**15, "boot", 1)


class Scene:
    """A recorder over a log in memory, whose commits are counted and can be made to wait or fail."""

    def __init__(self) -> None:
        ids, self.commits, self.full, self.free = count(), 0, False, asyncio.Event()
        self.free.set()
        self.log = MemoryLog(Standing(), commit=self.commit)
        self.journal = Journal(self.log, Standing(), lambda: f"id-{next(ids)}")
        self.outcomes = OutcomeRecorder(self.journal)

    async def commit(self) -> None:
        await self.free.wait()
        if self.full:
            raise LogUnavailable("full")
        self.commits += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.outcomes.run(), name="outcomes")
            yield
            self.outcomes.close()

    async def record(self, *subjects: str) -> list[BaseException | None]:
        return await asyncio.gather(*map(self.outcomes.record, map(acked, subjects)), return_exceptions=True)

    def recorded(self) -> list[str]:
        return [event.subject for event in self.log.events]


async def test_what_ends_together_is_one_commit() -> None:
    scene = Scene()
    async with scene.running():
        await scene.record("one", "two", "three")
        assert (scene.recorded(), scene.commits) == (["one", "two", "three"], 1)


async def test_one_that_no_log_can_take_keeps_out_no_other() -> None:
    scene = Scene()
    async with scene.running():
        one, bad, two = await scene.record("one", "b\0ad", "two")
    assert (one, two, scene.recorded()) == (None, None, ["one", "two"])
    assert isinstance(bad, Refused)


async def test_what_a_cancelled_caller_has_handed_over_is_recorded() -> None:
    scene = Scene()
    async with scene.running():
        scene.free.clear()
        callers = [asyncio.create_task(scene.outcomes.record(acked(name))) for name in ("early", "late")]
        await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
        await asyncio.wait(callers)
        scene.free.set()
    assert scene.recorded() == ["early", "late"]


async def test_what_waits_at_the_end_is_recorded_before_it() -> None:
    scene = Scene()
    async with scene.running():
        scene.free.clear()
        callers = []
        for name in ("first", "second"):  # the second comes while the first is being committed
            callers.append(asyncio.create_task(scene.outcomes.record(acked(name))))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        scene.outcomes.close()
        scene.free.set()
    await asyncio.gather(*callers)
    assert scene.recorded() == ["first", "second"]


@pytest.mark.parametrize("number", [1, 3])
async def test_what_no_disk_takes_is_held(number: int) -> None:
    scene = Scene()
    scene.full = True
    async with scene.running():
        assert await scene.record(*map(str, range(number))) == [None] * number
    scene.full = False
    await scene.log.append(*scene.journal._held)
    assert scene.recorded() == [str(one) for one in range(number)]
