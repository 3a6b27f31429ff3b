"""Watchers and executors of an engine come and go while the loops run, and what they left open waits for them."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.composition import FOLD
from pulse_core.execute import ExecutorLoop, ExecutorRegistry
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, EffectExecuting
from pulse_core.ports.executor import Policy, Safety
from pulse_core.projections.state import State
from pulse_core.record.gate import Gate
from pulse_core.record.journal import Journal
from pulse_core.record.view import View
from tests.simulation.test_senses import Probe
from tests.simulation.world import World, simulate

BEEP = Effect(action="beep", key="beep")

SOON = {"daemon": {"executor_scan_interval_ms": 1_000}}
"""The scan finds what an executor that is registered later is for."""


def test_an_enlisted_watcher_is_attended_to_until_others_are() -> None:
    first, second = Probe("first", lambda: 1), Probe("second", lambda: 2)

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.watch.register([first])
        await asyncio.sleep(21)
        assert len(first.looks) == 5
        assert daemon.watch.windows["first"].values("value") == (1,) * 5
        daemon.watch.register([second])
        await asyncio.sleep(21)
        assert (len(first.looks), len(second.looks)) == (5, 5)
        assert "first" not in daemon.watch.windows
        told = [one["name"] for one in daemon.report()["watchers"]]
        assert (told[0], told[-1], len(told)) == ("process-alive", "second", 2)

    simulate(story, {})


def test_a_window_goes_on_when_its_next_watcher_has_the_same_key() -> None:
    old, new = Probe("queue", lambda: "old"), Probe("queue", lambda: "new")

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.watch.register([old])
        await asyncio.sleep(7)
        daemon.watch.register([new])
        await asyncio.sleep(1)
        assert daemon.watch.windows["queue"].values("value") == ("old", "old", "new")

    simulate(story, {})


def test_a_look_under_way_is_broken_off_when_others_are_enlisted() -> None:
    slow = Probe("slow", lambda: asyncio.sleep(1.5))

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.watch.register([slow])
        await asyncio.sleep(1)
        daemon.watch.register([])
        await asyncio.sleep(5)
        assert "slow" not in daemon.watch.windows
        assert not world.events("error")

    simulate(story, {})


def test_nobody_takes_the_place_of_pulses_own_executors() -> None:
    own, other = MemoryExecutor("notify"), MemoryExecutor("notify")
    executor_registry = ExecutorRegistry({"notify": own})
    executor_registry.register({"notify": other, "beep": other})
    assert executor_registry["notify"] is own
    assert sorted(executor_registry) == ["beep", "notify"]
    executor_registry.register({})
    assert list(executor_registry) == ["notify"]


def test_only_an_incomplete_roster_awaits_anybody() -> None:
    executor_registry = ExecutorRegistry({"notify": MemoryExecutor("notify")}, is_complete=False)
    assert executor_registry.awaits("beep")
    assert not executor_registry.awaits("notify")
    executor_registry.register({})
    assert not executor_registry.awaits("beep")


def wished(world: World, *more: Draft) -> State:
    """What the log says when `beep` was wished in an earlier life, and whatever came of it."""
    return FOLD(FOLD.start, [world.log._row(draft, draft.payload.model_dump_json()) for draft in more])


async def second_life(world: World, executor_registry: ExecutorRegistry, view: View) -> ExecutorLoop:
    """An executor loop that finds what an earlier one left."""
    journal = Journal(world.log, world.clock, world.new_id)
    world.log.listen(view.on_events)
    return ExecutorLoop(
        journal, view, lambda: world.settings, executor_registry, world.clock, Random(0), lambda *_: None
    )


def left(world: World, *, begun: bool) -> View:
    """A view of a log in which `beep` is open, and was begun by an earlier daemon or not."""
    drafts = [Draft(BEEP, subject="beep", id="wish")]
    if begun:
        drafts.append(Draft(EffectExecuting(), subject="wish", cause="wish"))
    return View(wished(world, *drafts))


def settled(world: World) -> list[Event]:
    return world.events("effect-acked", "effect-failed", "effect-unknown")


@pytest.mark.parametrize("begun", [True, False], ids=["interrupted", "pending"])
def test_what_was_left_open_waits_for_its_executor(begun: bool) -> None:
    beep = MemoryExecutor("beep", Policy(Safety.IDEMPOTENT))

    async def story(world: World) -> None:
        view = left(world, begun=begun)
        loop = await second_life(world, executor_registry := ExecutorRegistry({}, is_complete=False), view)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(loop.run())
            await asyncio.sleep(30)
            assert not settled(world)
            executor_registry.register({"beep": beep})
            await asyncio.sleep(2)
            assert [event.kind for event in settled(world)] == ["effect-acked"]
            assert beep.began == ["wish"]
            loop.stop()
            await running

    simulate(story, SOON)


@pytest.mark.parametrize(("begun", "end"), [(True, "effect-unknown"), (False, "effect-failed")])
def test_what_nobody_will_carry_out_any_more_is_settled(begun: bool, end: str) -> None:
    async def story(world: World) -> None:
        view = left(world, begun=begun)
        loop = await second_life(world, executor_registry := ExecutorRegistry({}, is_complete=False), view)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(loop.run())
            await asyncio.sleep(1)
            executor_registry.register({})
            await asyncio.sleep(2)
            assert [event.kind for event in settled(world)] == [end]
            loop.stop()
            await running

    simulate(story, SOON)


def test_the_gate_knows_who_is_enlisted() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        executor_registry = ExecutorRegistry(daemon.executors)
        gate = Gate(
            daemon.journal, daemon.parts.view, daemon.parts.current_settings, executor_registry, world.clock
        )
        executor_registry.register({"beep": MemoryExecutor("beep")})
        await gate.append(BEEP.by, "person", [Draft(BEEP)])
        executor_registry.register({})
        with pytest.raises(UnknownName, match="no executor 'beep'"):
            await gate.append(BEEP.by, "person", [Draft(Effect(action="beep", key="again"))])

    simulate(story, {})


def test_what_is_begun_while_another_engine_is_loaded_is_carried_out_by_that() -> None:
    first, second = MemoryExecutor("beep"), MemoryExecutor("beep")

    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.executors.register({"beep": first})

        def load_another(events: Sequence[Event]) -> None:
            if any(event.kind == EffectExecuting.kind for event in events):
                daemon.executors.register({"beep": second})

        world.log.listen(load_another)
        wish = await world.ask(BEEP)
        await asyncio.sleep(1)
        assert (first.done, second.done) == ([], [wish.id])

    simulate(story, {})
