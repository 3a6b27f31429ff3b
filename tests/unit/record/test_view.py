"""The view: checkpoints are believed only where they are of this log, and cost nothing when they are gone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event as ThreadEvent
from threading import current_thread, main_thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_core.composition import FOLD
from pulse_core.model.event import Checkpoint, Draft, Event, Head
from pulse_core.model.kinds import Effect, EffectExecuting, Paused, ProcessUp, Resumed
from pulse_core.model.moment import Moment
from pulse_core.projections.state import CORE, EFFECTS, PROCESSES, State
from pulse_core.record import view as view_module
from pulse_core.record.journal import Journal, provisional_event
from pulse_core.record.view import View, advance_state, restore_from_checkpoints, save_checkpoints
from tests.events import event, histories


class Steps:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self.steps = count(1)

    def now(self) -> Moment:
        step = next(self.steps) * 1_000_000
        return Moment(10**15 + step, "boot", step)


Story = Callable[[MemoryLog, MemoryCheckpoints], Awaitable[None]]


def told(story: Story, log: MemoryLog | None = None) -> None:
    log = log or MemoryLog(Steps())

    async def telling() -> None:
        for number in range(20):
            wish = Draft(Effect(action="note", key=f"k{number}"), f"k{number}", id=f"w{number}")
            await log.append(wish, Draft(EffectExecuting(), f"w{number}"))
            await log.append(Draft(ProcessUp(pid=number, started=1, evidence="x"), "gateway"))
        await story(log, MemoryCheckpoints())

    asyncio.run(telling())


async def whole(log: MemoryLog) -> State:
    return await advance_state(log, FOLD.start, log.head.seq)


def test_a_checkpoint_and_what_came_after_it_is_the_whole() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await save_checkpoints(log, checkpoints, await advance_state(log, FOLD.start, 31))
        state = await restore_from_checkpoints(log, await checkpoints.load())
        assert state.seq == 31
        assert await advance_state(log, state, log.head.seq) == await whole(log)

    told(story)


def test_without_checkpoints_everything_is_folded() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        assert await restore_from_checkpoints(log, await checkpoints.load()) == FOLD.start

    told(story)


def test_a_checkpoint_of_another_log_is_not_believed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await save_checkpoints(log, checkpoints, await whole(log))
        other = MemoryLog(Steps(), host="another")
        for _ in range(80):
            await other.append(Draft(Paused()))
        assert await restore_from_checkpoints(other, await checkpoints.load()) == FOLD.start

    told(story)


def test_a_checkpoint_beyond_the_log_is_not_believed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await save_checkpoints(log, checkpoints, await whole(log))
        assert await restore_from_checkpoints(MemoryLog(Steps()), await checkpoints.load()) == FOLD.start

    told(story)


class Reads(MemoryLog):
    """A log that remembers what was asked of it."""

    def __init__(self) -> None:
        super().__init__(Steps())
        self.asked: list[tuple[int, frozenset[str], int | None]] = []

    def since(
        self, seq: int, kinds: Collection[str] | None = None, upto: int | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        self.asked.append((seq, frozenset(kinds or ()), upto))
        return super().since(seq, kinds, upto)


Spoil = Callable[[Checkpoint], Checkpoint]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kept: kept._replace(version=0),
        lambda kept: kept._replace(head=Head(7, b"of another log")),
        lambda kept: kept._replace(state='{"open": 7'),
    ],
    ids=["another version of the fold", "another log", "it can't be read"],
)
def test_a_projection_whose_checkpoint_is_none_is_folded_anew_alone(spoil: Spoil) -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        assert isinstance(log, Reads)
        await save_checkpoints(log, checkpoints, await advance_state(log, FOLD.start, 31))
        kept = await checkpoints.load()
        log.asked.clear()
        state = await restore_from_checkpoints(log, {**kept, "effects": spoil(kept["effects"])})
        assert log.asked == [(0, EFFECTS.kinds, 31)]
        assert state == await advance_state(log, FOLD.start, 31)

    told(story, Reads())


def test_a_projection_that_is_new_is_folded_alone() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        assert isinstance(log, Reads)
        await save_checkpoints(log, checkpoints, await whole(log))
        kept = dict(await checkpoints.load())
        del kept["processes"]
        log.asked.clear()
        assert await restore_from_checkpoints(log, kept) == await whole(log)
        assert log.asked[0] == (0, PROCESSES.kinds, log.head.seq)

    told(story, Reads())


@given(histories, st.lists(st.integers(0, 60), min_size=len(CORE), max_size=len(CORE)))
def test_projections_that_stand_at_different_rows_catch_up_to_the_furthest(
    history: list[Event], rows: list[int]
) -> None:
    rows = [min(row, len(history)) for row in rows]
    kept = {}
    for projection, row in zip(CORE, rows, strict=True):
        value = FOLD(FOLD.start, history[:row]).of(projection)
        kept[projection.name] = Checkpoint(projection.version, Head(row), projection.dump(value))
    catch_up = FOLD.resume(kept)
    for gap in catch_up.gaps():
        catch_up.take([row for row in history if gap.since < row.seq <= gap.upto and row.kind in gap.kinds])
    assert catch_up.state == FOLD(FOLD.start, history[: max(rows)], upto=max(rows))


def test_checkpoints_beyond_a_row_are_not_used_for_it() -> None:
    early = {one.name: Checkpoint(one.version, Head(3), one.dump(one.empty)) for one in CORE}
    late = {one.name: Checkpoint(one.version, Head(9), one.dump(one.empty)) for one in CORE}
    assert FOLD.resume(late, early, upto=8).state.seq == 3
    assert FOLD.resume(late, early, upto=9).state.seq == 9
    assert FOLD.resume(late, early, upto=2).state == FOLD.start


def test_what_is_provisional_is_not_checkpointed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        view = View(await whole(log))
        draft = Draft(Paused(), id="held", moment=Moment(1, "boot", 1))
        view.add_provisional([provisional_event(draft, 999)])
        assert view().control.paused is not None
        await save_checkpoints(log, checkpoints, view())
        assert await checkpoints.load() == {}

    told(story)


@given(histories, st.lists(st.integers(1, 9), max_size=20))
def test_the_view_is_the_fold_however_the_news_came(history: list[Event], sizes: list[int]) -> None:
    view, rest = View(), history
    for size in sizes:
        view.on_events(rest[:size])
        view()
        rest = rest[size:]
    view.on_events(rest)
    assert view() == FOLD(FOLD.start, history)


def test_another_thread_may_read_the_view_while_events_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that fold at once would count events twice, or lose those that come meanwhile."""
    folded, go_on = ThreadEvent(), ThreadEvent()

    def fold(state: State, events: Sequence[Event]) -> State:
        done = FOLD(state, events)
        if current_thread() is not main_thread():
            folded.set()
            assert go_on.wait(30)
        return done

    monkeypatch.setattr(view_module, "FOLD", fold)
    view = View(FOLD.start)
    view.on_events([event(1, Paused())])
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(view)
        assert folded.wait(30)
        view.on_events([event(2, Resumed())])
        assert view().control.paused is None
        go_on.set()
        assert answer.result().control.paused is not None
        assert view().control.paused is None
        view.add_provisional([event(3, Paused())])
        held = other.submit(view).result()
        assert (held.control.paused is None, held.seq, held.provisional) == (False, 2, 1)
    assert view() == held


@given(histories, st.integers(0, 60))
def test_the_view_forgets_a_supposition_once_it_is_recorded(history: list[Event], cut: int) -> None:
    early, late = history[:cut], history[cut:]
    view = View()
    view.on_events(early)
    view.add_provisional([row._replace(seq=row.seq + 1_000) for row in late])
    imagined = view()
    view.on_events(late)
    assert view() == FOLD(FOLD.start, history)
    assert imagined.processes == view().processes


def test_held_drafts_are_written_once_even_by_two_at_a_time() -> None:
    async def story(log: MemoryLog, _checkpoints: MemoryCheckpoints) -> None:
        ids = (f"id-{number}" for number in count())
        journal = Journal(log, Steps(), lambda: next(ids))
        rows = log.head.seq
        journal.hold(Draft(Paused(why="held")))

        async def slow() -> None:
            await asyncio.sleep(0.001)

        log.commit = slow
        await asyncio.gather(journal.append(Draft(Paused())), journal.append(Draft(Paused())))
        said = [row.payload for row in log.events[rows:]]
        assert said == [Paused(why="held"), Paused(), Paused()]

    told(story)


def test_an_event_of_the_twin_is_told_like_a_recorded_one() -> None:
    draft = Draft(Paused(), "s", id="x", moment=Moment(1, "boot", 2))
    assert provisional_event(draft, 9)[:7] == event(9, Paused(), "s", "x")._replace(at=1, mono=2)[:7]
