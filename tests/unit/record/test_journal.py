"""The journal: what is announced and what is decided of it go to the disk together, and are heard once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from pulse_adapters.memory.log import MemoryLog
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, EffectExecuting, ProcessDied, Resumed
from pulse_core.model.moment import Moment
from pulse_core.record.journal import Journal

DEATH = Draft(ProcessDied(pid=1, evidence="x", healthy=True), "gateway")
WISH = Draft(Effect(action="restart-process", key="k"), "k", id="wish")
ASKED = Draft(Resumed())
BEGUN = Draft(EffectExecuting(), "wish")


class Standing:
    """A clock that stands still."""

    def now(self) -> Moment:
        return Moment(10**15, "boot", 1)


class CountingLog(MemoryLog):
    """A log that remembers what it was given at a time."""

    def __init__(self, commit: Callable[[], Awaitable[None]]) -> None:
        super().__init__(Standing(), commit=commit)
        self.given: list[list[str]] = []

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        self.given.append([draft.payload.kind for draft in drafts])
        return await super().append(*drafts)


class Desk:
    """A journal on a log in memory, whose commits are counted and can be made to fail or wait."""

    def __init__(self) -> None:
        ids = (f"id-{number}" for number in count())
        self.free, self.full, self.commits = asyncio.Event(), False, 0
        self.free.set()
        self.log = CountingLog(self.commit)
        self.journal = Journal(self.log, Standing(), lambda: next(ids))
        self.heard: list[str] = []
        self.journal.listen_once(self.hear)

    async def commit(self) -> None:
        await self.free.wait()
        if self.full:
            raise LogUnavailable("full")
        self.commits += 1

    def hear(self, events: Sequence[Event]) -> None:
        self.heard += [event.kind for event in events]

    async def decide(self) -> None:
        await self.journal.append_in_time(WISH, BEGUN)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.log.events]


ARC = ["process-died", "effect", "effect-executing"]


async def wait_for(event: asyncio.Event) -> None:
    await event.wait()


async def nothing() -> None:
    """Nobody wishes anything."""


async def test_a_death_and_what_is_decided_of_it_are_one_commit_and_heard_once() -> None:
    request_handler = Desk()
    await request_handler.journal.announce([DEATH], request_handler.decide)
    assert (request_handler.kinds(), request_handler.commits) == (ARC, 1)
    assert request_handler.heard == ARC


async def test_what_nobody_answers_is_recorded_by_itself() -> None:
    request_handler = Desk()
    await request_handler.journal.announce([DEATH], nothing)
    assert (request_handler.kinds(), request_handler.heard) == (["process-died"], ["process-died"])


async def test_an_announced_event_is_known_before_it_is_decided_with_the_number_it_will_have() -> None:
    request_handler = Desk()
    known: list[Event] = []
    request_handler.journal.listen_to_provisional(known.extend)

    async def look() -> None:
        assert [event.kind for event in known] == ["process-died"]
        assert not request_handler.log.events

    await request_handler.journal.announce([DEATH], look)
    assert [(event.seq, event.id) for event in known] == [
        (event.seq, event.id) for event in request_handler.log.events
    ]


async def test_what_waits_for_its_answer_alone_is_not_said_to_be_held_for_want_of_a_disk() -> None:
    desk = Desk()

    async def look() -> None:
        assert desk.journal.held == {}
        desk.full = True
        await desk.journal.append_or_hold(WISH)
        assert desk.journal.held == {"process-died": 1, "effect": 1}

    await desk.journal.announce([DEATH], look)
    assert desk.journal.held == {"process-died": 1, "effect": 1}


async def test_an_announcement_goes_with_its_answer_after_what_is_on_its_way_and_before_who_asks_later() -> (
    None
):
    desk = Desk()
    desk.free.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.journal.append(ASKED))
        await asyncio.sleep(0)
        group.create_task(desk.journal.announce([DEATH], desk.decide))
        await asyncio.sleep(0)
        for _ in range(5):
            group.create_task(desk.journal.append(ASKED))
        await asyncio.sleep(0)
        desk.free.set()
    assert desk.log.given[:2] == [["resumed"], ARC]
    assert desk.kinds() == ["resumed", *ARC, *["resumed"] * 5]


async def test_who_asks_while_an_announcement_is_not_answered_waits_a_moment_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.HURRY", 0.01)
    desk, end = Desk(), asyncio.Event()
    announcing = asyncio.create_task(desk.journal.announce([DEATH], partial(wait_for, end)))
    await asyncio.sleep(0)
    await desk.journal.append(ASKED)  # and takes along what is held
    assert desk.kinds() == ["process-died", "resumed"]
    end.set()
    await announcing


async def test_what_is_on_its_way_is_not_written_once_more_by_who_comes_meanwhile() -> None:
    desk = Desk()
    desk.free.clear()
    desk.journal.hold(DEATH)
    async with asyncio.TaskGroup() as group:
        for draft in (WISH, BEGUN):
            group.create_task(desk.journal.append_or_hold(draft))
            await asyncio.sleep(0)
        desk.free.set()
    assert desk.log.given == [["process-died", "effect"], ["effect-executing"]]
    assert (desk.kinds(), desk.heard) == (ARC, ARC)


async def test_who_waits_for_what_the_disk_then_does_not_take_comes_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.RETRY", 0)
    desk = Desk()
    desk.free.clear()
    desk.full = True
    desk.journal.hold(DEATH)
    async with asyncio.TaskGroup() as group:
        for draft in (WISH, BEGUN):
            group.create_task(desk.journal.append_or_hold(draft))
            await asyncio.sleep(0)
        desk.free.set()
    desk.full = False
    await desk.journal.append_or_hold()
    assert (desk.kinds(), desk.heard) == (ARC, ARC)


async def test_what_a_full_disk_did_not_take_goes_first_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.RETRY", 0)
    request_handler = Desk()
    request_handler.full = True
    await request_handler.journal.announce([DEATH], nothing)
    assert (request_handler.kinds(), request_handler.heard) == ([], ["process-died"])
    request_handler.full = False
    await request_handler.decide()
    assert (request_handler.kinds(), request_handler.heard) == (ARC, ARC)


async def test_a_full_disk_is_tried_twice_a_second_however_many_ask() -> None:
    desk = Desk()
    desk.full = True
    tries: list[None] = []

    async def commit() -> None:
        tries.append(None)
        raise LogUnavailable("full")

    desk.log.commit = commit
    for _ in range(100):
        await desk.journal.append_or_hold(DEATH)
    assert len(tries) == 1
    with pytest.raises(LogUnavailable, match="full"):
        await desk.journal.append(WISH)


async def test_a_log_that_is_gone_is_told_once_for_each_thing_that_became_of_it() -> None:
    desk = Desk()
    raised: list[Event] = []
    desk.journal.listen_to_provisional(raised.extend)
    for words in ("it was deleted", "it was deleted", "its rows are saved"):
        desk.log.gone = words
        with pytest.raises(LogUnavailable, match="it was deleted"):
            await desk.journal.append(DEATH)
        await desk.journal.look()
    assert [(event.kind, event.subject) for event in raised] == [("condition-raised", "log-gone")] * 2
    assert "its rows are saved" in raised[-1].data


async def test_at_the_end_what_is_held_is_tried_once_more_and_said_to_be_lost_or_is_left_to_the_next_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.RETRY", 0)
    desk = Desk()
    desk.full = True
    await desk.journal.append_or_hold(DEATH, DEATH)
    await desk.journal.append_or_hold(WISH)
    assert desk.journal.held == {"process-died": 2, "effect": 1}
    await desk.journal.leave()
    assert "lost: 2 process-died, 1 effect; full" in caplog.text
    caplog.clear()
    desk.full = False
    await desk.journal.leave()
    assert (desk.kinds(), caplog.text) == (["process-died", "process-died", "effect"], "")


async def test_what_no_log_can_take_does_not_keep_out_the_rest() -> None:
    desk = Desk()
    desk.journal.hold(replace(DEATH, id="wish"), DEATH)
    await desk.log.append(WISH)
    left_out: list[str] = []
    desk.journal.listen_to_left_out(left_out.extend)
    await desk.journal.append(BEGUN)
    assert desk.kinds() == ["effect", "process-died", "effect-executing"]
    assert left_out == ["wish"]


async def test_a_disk_that_hangs_just_after_a_refusal_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.PATIENCE", 0.01)
    desk = Desk()
    desk.journal.hold(replace(DEATH, id="wish"), DEATH)
    await desk.log.append(WISH)
    desk.free.clear()
    async with asyncio.timeout(30):
        await desk.journal.append_or_hold(BEGUN)
    assert (desk.journal.hangs, desk.kinds()) == (True, ["effect"])
    assert desk.journal.held == {"process-died": 1, "effect-executing": 1}


async def test_what_is_held_is_written_though_a_look_at_the_logs_files_has_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.PATIENCE", 0)
    monkeypatch.setattr("pulse_core.record.journal.RETRY", 0)
    desk, recorded = Desk(), asyncio.Event()
    desk.journal.look = partial(wait_for, asyncio.Event())  # type: ignore[method-assign]
    desk.log.listen(lambda events: recorded.set())
    writer = asyncio.create_task(desk.journal.run())
    desk.journal.hold(DEATH)
    async with asyncio.timeout(30):
        await recorded.wait()
    assert desk.kinds() == ["process-died"]
    writer.cancel()


async def test_what_is_announced_is_answered_without_a_look_at_the_logs_files() -> None:
    request_handler, looks = Desk(), list[str]()

    async def look() -> None:
        looks.append("look")

    request_handler.journal.look = look  # type: ignore[method-assign]
    writer = asyncio.create_task(request_handler.journal.run())
    await asyncio.sleep(0)
    await request_handler.journal.announce([DEATH], request_handler.decide)
    await asyncio.sleep(0)
    assert (request_handler.kinds(), looks) == (ARC, [])
    request_handler.journal.hold(DEATH)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert looks == ["look"]
    writer.cancel()


async def test_what_is_recorded_in_the_moment_in_which_patience_ends_is_not_held_besides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a stop of the daemon itself, SIGSTOP or a pause of its machine: both have happened when it goes on."""
    monkeypatch.setattr("pulse_core.record.journal.PATIENCE", 0)
    desk = Desk()
    await desk.journal.append_or_hold(DEATH)
    assert (desk.kinds(), desk.heard) == (["process-died"], ["process-died"])
    assert (desk.journal.held, desk.journal.hangs) == ({}, False)


async def test_all_that_was_held_is_counted_when_what_hung_is_recorded_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulse_core.record.journal.PATIENCE", 0)
    desk, told = Desk(), list[str]()
    desk.journal.recovered = told.append
    desk.free.clear()
    asked = asyncio.create_task(desk.journal.append(ASKED))
    await asyncio.sleep(0)
    await desk.journal.append_or_hold(DEATH)
    desk.journal.hold(WISH)
    desk.free.set()
    await asked
    assert [words.partition("; ")[2] for words in told] == ["2 events were held"]
