"""What every event log promises."""

import asyncio
from collections.abc import Sequence

import pytest

from pulse_core.model.errors import Conflict, Refused
from pulse_core.model.event import NO_CHAIN, Draft, Event, Head
from pulse_core.model.kinds import (
    DaemonStopped,
    EffectCancelRequested,
    EventRedacted,
    Paused,
    ProcessUp,
    Resumed,
    SettingsLoaded,
)
from pulse_core.model.moment import Moment
from pulse_core.ports.log import EventLog

ID = "018f0000-0000-7000-8000-000000000001"


async def all_of(log: EventLog, seq: int = 0, **wanted: object) -> list[Event]:
    return [event async for batch in log.since(seq, **wanted) for event in batch]  # type: ignore[arg-type]


def drafts(count: int) -> list[Draft]:
    return [Draft(Paused(why=f"{number}"), subject=f"s{number}") for number in range(count)]


async def test_an_empty_log_stands_at_zero(log: EventLog) -> None:
    assert log.head == Head(0, NO_CHAIN)
    assert await all_of(log) == []
    assert await log.append() == ()
    assert await log.chain_at(0) == NO_CHAIN
    assert await log.chain_at(1) is None


async def test_an_append_yields_what_is_read_later(log: EventLog) -> None:
    appended = await log.append(
        Draft(ProcessUp(pid=7, started=9, evidence="seen"), subject="gateway", cause=ID, actor="root"),
        Draft(Paused(), moment=Moment(5, "other-boot", 6)),
    )
    assert await all_of(log) == list(appended)
    first, second = appended
    assert (first.seq, first.kind, first.subject, first.cause) == (1, "process-up", "gateway", ID)
    assert first.payload == ProcessUp(pid=7, started=9, evidence="seen")
    assert first.actor == "root"
    assert first.boot == "boot-1"
    assert second.moment == Moment(5, "other-boot", 6)
    assert first.host == second.host != ""
    assert first.id != second.id


async def test_what_is_taken_out_is_taken_out_once_and_who_asks_again_is_answered(log: EventLog) -> None:
    (event,) = await log.append(Draft(Paused(why="a password")))
    redaction = Draft(EventRedacted(why="a slip"), subject=event.id, id=ID)
    said = await log.append(redaction)
    assert await log.append(redaction) == said
    with pytest.raises(Refused, match="was taken out already"):
        await log.append(Draft(EventRedacted(why="a slip"), subject=event.id))
    assert log.head.seq == 2


async def test_the_head_is_the_last_row(log: EventLog) -> None:
    await log.append(*drafts(3))
    assert log.head.seq == 3
    assert log.head.chain == await log.chain_at(3)
    (last,) = [event async for batch in log.since(2) for event in batch]
    assert [await log.has(last.id), await log.has(last.id[::-1])] == [True, False]
    assert len({await log.chain_at(seq) for seq in range(4)}) == 4


async def test_concurrent_callers_get_their_own_events_in_their_own_order(log: EventLog) -> None:
    calls = [
        [Draft(Paused(why=f"{caller}-{place}")) for place in range(caller % 3 + 1)] for caller in range(50)
    ]
    results = await asyncio.gather(*(log.append(*call) for call in calls))
    for call, events in zip(calls, results, strict=True):
        assert [event.payload for event in events] == [draft.payload for draft in call]
        assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(call)))
    assert [event.seq for event in await all_of(log)] == list(range(1, log.head.seq + 1))


async def test_one_id_with_one_content_is_one_event(log: EventLog) -> None:
    draft = Draft(Paused(why="x"), id=ID, subject="s")
    (first,) = await log.append(draft)
    assert await log.append(draft) == [first]
    assert log.head.seq == 1


async def test_one_id_with_another_content_is_refused(log: EventLog) -> None:
    await log.append(Draft(Paused(why="x"), id=ID, subject="s", actor="a", cause="c"))
    others = [
        Draft(Paused(why="y"), id=ID, subject="s", actor="a", cause="c"),
        Draft(Resumed(why="x"), id=ID, subject="s", actor="a", cause="c"),
        Draft(Paused(why="x"), id=ID, subject="t", actor="a", cause="c"),
        Draft(Paused(why="x"), id=ID, subject="s", actor="b", cause="c"),
        Draft(Paused(why="x"), id=ID, subject="s", actor="a"),
    ]
    for other in others:
        with pytest.raises(Conflict):
            await log.append(Draft(Paused()), other)
    assert log.head.seq == 1


async def test_repeats_and_conflicts_are_told_apart_among_concurrent_callers(log: EventLog) -> None:
    same = Draft(Paused(why="x"), id=ID)
    odd = Draft(Paused(why="y"), id=ID)
    results: Sequence[Sequence[Event] | BaseException] = await asyncio.gather(
        log.append(same), log.append(Draft(Paused()), odd), log.append(same, same), log.append(Draft(Resumed())),
        return_exceptions=True,
    )  # fmt: skip
    first, refused, again, other = results
    assert isinstance(refused, Conflict)
    assert isinstance(first, Sequence)
    assert again == [first[0], first[0]]
    assert isinstance(other, Sequence)
    assert [event.seq for event in await all_of(log)] == [1, 2]


async def test_a_repeat_beside_something_new_records_only_the_new(log: EventLog) -> None:
    (old,) = await log.append(Draft(Paused(), id=ID))
    new, repeated = await log.append(Draft(Resumed()), Draft(Paused(), id=ID))
    assert repeated == old
    assert await all_of(log) == [old, new]


async def test_a_bad_payload_is_refused_alone(log: EventLog) -> None:
    bad = EffectCancelRequested.model_construct(why=7)  # type: ignore[arg-type]  # that is what is bad about it
    results = await asyncio.gather(
        log.append(Draft(Paused())), log.append(Draft(Paused()), Draft(bad)), return_exceptions=True
    )
    assert isinstance(results[1], Refused)
    assert [event.kind for event in await all_of(log)] == ["paused"]


@pytest.mark.parametrize(
    "draft",
    [
        Draft(Paused(), subject="half a character \ud800"),
        Draft(Paused(), subject="a NUL \0 inside"),
        Draft(Paused(), id="\ud800"),
        Draft(DaemonStopped.model_construct(pid=1, reason="\ud800")),
        Draft(Paused(), moment=Moment(2**63, "b", 0)),
    ],
    ids=["surrogate", "nul", "id", "payload", "moment"],
)
async def test_what_no_row_can_hold_is_refused_alone(log: EventLog, draft: Draft) -> None:
    results = await asyncio.gather(log.append(Draft(Paused())), log.append(draft), return_exceptions=True)
    assert isinstance(results[1], Refused)
    assert log.head.seq == 1


async def test_a_cancelled_caller_undoes_nothing(log: EventLog) -> None:
    tasks = [asyncio.create_task(log.append(*drafts(3))) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await log.append(Draft(Resumed()))
    rows = [event.subject for event in await all_of(log)]
    assert rows == ["s0", "s1", "s2"] * 20 + [""]


async def test_listeners_hear_of_new_events_before_append_returns(log: EventLog) -> None:
    heard: list[Event] = []
    log.listen(heard.extend)
    (event,) = await log.append(Draft(Paused(), id=ID))
    assert heard == [event]
    await log.append(Draft(Paused(), id=ID))
    assert heard == [event]
    await asyncio.gather(*(log.append(Draft(Resumed())) for _ in range(30)))
    assert [event.seq for event in heard] == list(range(1, 32))


async def test_a_listener_sees_the_head_that_it_is_told_of(log: EventLog) -> None:
    heads: list[tuple[int, int]] = []
    log.listen(lambda events: heads.append((events[-1].seq, log.head.seq)))
    await log.append(*drafts(3))
    assert heads == [(3, 3)]


async def test_since_begins_after_a_row_and_ends_with_one(log: EventLog) -> None:
    await log.append(*drafts(10))
    assert [event.seq for event in await all_of(log, 4)] == [5, 6, 7, 8, 9, 10]
    assert [event.seq for event in await all_of(log, 4, upto=6)] == [5, 6]
    assert await all_of(log, 10) == []


async def test_since_picks_kinds(log: EventLog) -> None:
    await log.append(Draft(Paused()), Draft(Resumed()), Draft(Paused()))
    assert [event.seq for event in await all_of(log, kinds={"paused"})] == [1, 3]
    assert [event.seq for event in await all_of(log, kinds=["paused", "resumed"])] == [1, 2, 3]
    assert await all_of(log, kinds=()) == []


async def test_many_rows_come_in_batches_without_gap_or_repeat(log: EventLog) -> None:
    await log.append(*drafts(4_100))
    batches = [batch async for batch in log.since(0)]
    assert len(batches) > 1
    assert [event.seq for batch in batches for event in batch] == list(range(1, 4_101))


async def test_a_fold_is_fed_with_the_same_events(log: EventLog) -> None:
    names = tuple(f"process-{number:06}" for number in range(6_000))
    await log.append(*drafts(4_100), Draft(SettingsLoaded(digest="d", processes=names)), Draft(Resumed()))
    fed: list[Event] = []
    await log.feed(fed.extend, 3, {"paused", "settings-loaded"}, 4_101)
    assert fed == await all_of(log, 3, kinds={"paused", "settings-loaded"}, upto=4_101)
    assert [fed[0].seq, fed[-1].seq] == [4, 4_101]


async def test_a_large_payload_comes_back_whole(log: EventLog) -> None:
    names = tuple(f"process-{number:06}" for number in range(6_000))
    large = Draft(SettingsLoaded(digest="d", processes=names), id=ID)
    heard: list[Event] = []
    log.listen(heard.extend)
    (event,) = await log.append(large)
    assert event.payload == large.payload
    assert heard == [event]
    assert await all_of(log) == [event]
    assert await log.append(large) == [event]
