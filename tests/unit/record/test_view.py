"""The view: checkpoints are believed only where they are of this log, and cost nothing when they are gone."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from pulse_adapters.memory import MemoryCheckpoints, MemoryLog
from pulse_core.model.event import Draft, Event, Head
from pulse_core.model.kinds import Effect, EffectExecuting, Paused, ProcessUp
from pulse_core.model.moment import Moment
from pulse_core.projections import Projected, fold
from pulse_core.record.journal import Journal, supposed
from pulse_core.record.view import View, advanced, checkpoint, restored
from tests.events import event, histories


class Steps:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self.steps = count(1)

    def now(self) -> Moment:
        step = next(self.steps) * 1_000_000
        return Moment(10**15 + step, "boot", step)


Story = Callable[[MemoryLog, MemoryCheckpoints], Awaitable[None]]


def told(story: Story) -> None:
    async def telling() -> None:
        log = MemoryLog(Steps())
        for number in range(20):
            wish = Draft(Effect(action="note", key=f"k{number}"), f"k{number}", id=f"w{number}")
            await log.append(wish, Draft(EffectExecuting(), f"w{number}"))
            await log.append(Draft(ProcessUp(pid=number, started=1, evidence="x"), "gateway"))
        await story(log, MemoryCheckpoints())

    asyncio.run(telling())


async def whole(log: MemoryLog) -> Projected:
    return await advanced(log, Projected(), log.head.seq)


def test_a_checkpoint_and_what_came_after_it_is_the_whole() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await advanced(log, Projected(), 31))
        state = await restored(log, await checkpoints.load())
        assert state.seq == 31
        assert await advanced(log, state, log.head.seq) == await whole(log)

    told(story)


def test_without_checkpoints_everything_is_folded() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        assert await restored(log, await checkpoints.load()) == Projected()

    told(story)


def test_a_checkpoint_of_another_log_is_not_believed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await whole(log))
        other = MemoryLog(Steps(), host="another")
        for _ in range(80):
            await other.append(Draft(Paused()))
        assert await restored(other, await checkpoints.load()) == Projected()

    told(story)


def test_a_checkpoint_beyond_the_log_is_not_believed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await whole(log))
        assert await restored(MemoryLog(Steps()), await checkpoints.load()) == Projected()

    told(story)


def test_a_checkpoint_of_an_older_fold_is_not_believed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await whole(log))
        kept = await checkpoints.load()
        old = {**kept, "effects": kept["effects"]._replace(version=0)}
        assert await restored(log, old) == Projected()

    told(story)


def test_checkpoints_of_different_rows_are_not_mixed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await whole(log))
        kept = await checkpoints.load()
        mixed = {**kept, "effects": kept["effects"]._replace(head=Head(0))}
        assert await restored(log, mixed) == Projected()

    told(story)


def test_a_checkpoint_that_cannot_be_read_is_no_checkpoint() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        await checkpoint(log, checkpoints, await whole(log))
        kept = await checkpoints.load()
        torn = {**kept, "effects": kept["effects"]._replace(state='{"open": 7')}
        assert await restored(log, torn) == Projected()

    told(story)


def test_what_is_only_supposed_is_not_checkpointed() -> None:
    async def story(log: MemoryLog, checkpoints: MemoryCheckpoints) -> None:
        view = View(await whole(log))
        draft = Draft(Paused(), id="held", moment=Moment(1, "boot", 1))
        view.imagine([supposed(draft, 999)])
        assert view().control.paused is not None
        await checkpoint(log, checkpoints, view())
        assert await checkpoints.load() == {}

    told(story)


@given(histories, st.lists(st.integers(1, 9), max_size=20))
def test_the_view_is_the_fold_however_the_news_came(history: list[Event], sizes: list[int]) -> None:
    view, rest = View(), history
    for size in sizes:
        view.hear(rest[:size])
        view()
        rest = rest[size:]
    view.hear(rest)
    assert view() == fold(Projected(), history)


@given(histories, st.integers(0, 60))
def test_the_view_forgets_a_supposition_once_it_is_recorded(history: list[Event], cut: int) -> None:
    early, late = history[:cut], history[cut:]
    view = View()
    view.hear(early)
    view.imagine([row._replace(seq=row.seq + 1_000) for row in late])
    imagined = view()
    view.hear(late)
    assert view() == fold(Projected(), history)
    assert imagined.processes == view().processes


def test_held_drafts_are_written_once_even_by_two_at_a_time() -> None:
    async def story(log: MemoryLog, _checkpoints: MemoryCheckpoints) -> None:
        ids = (f"id-{number}" for number in count())
        journal = Journal(log, Steps(), lambda: next(ids))
        rows = log.head.seq
        journal.suppose(Draft(Paused(why="held")))

        async def slow() -> None:
            await asyncio.sleep(0.001)

        log.commit = slow
        await asyncio.gather(journal.append(Draft(Paused())), journal.append(Draft(Paused())))
        said = [row.payload for row in log.events[rows:]]
        assert said == [Paused(why="held"), Paused(), Paused()]

    told(story)


def test_an_event_of_the_twin_is_told_like_a_recorded_one() -> None:
    draft = Draft(Paused(), "s", id="x", moment=Moment(1, "boot", 2))
    assert supposed(draft, 9)[:7] == event(9, Paused(), "s", "x")._replace(at=1, mono=2)[:7]
