"""An effect that another one replaces while its beginning is being recorded."""

import asyncio
from random import Random

from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.composition import FOLD
from pulse_core.execute import ExecutorLoop, ExecutorRegistry
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, EffectExecuting, Paused, Resumed
from pulse_core.model.payload import Role
from pulse_core.ports.executor import Policy, Safety
from pulse_core.record.gate import Gate
from pulse_core.record.journal import RETRY, Journal
from pulse_core.record.view import View
from tests.simulation.world import World, simulate

NOTICE = Effect(action="notify", key="notify:it", params={"title": "It", "text": "is wrong", "topic": "it"})


class Scene:
    """An executor loop, and a gate, on a log in which the notice `wish` is open, and what else came of it."""

    def __init__(self, world: World, *more: Draft) -> None:
        drafts = (Draft(NOTICE, subject=NOTICE.key, id="wish"), *more)
        rows = [world.log._row(one, one.payload.model_dump_json()) for one in drafts]
        self.view, journal = View(FOLD(FOLD.start, rows)), Journal(world.log, world.clock, world.new_id)
        world.log.listen(self.view.on_events)
        self.notify = MemoryExecutor("notify", Policy(Safety.IDEMPOTENT))
        shared = journal, self.view, lambda: world.settings, ExecutorRegistry({"notify": self.notify})
        self.loop = ExecutorLoop(*shared, world.clock, Random(0), lambda *_: None)
        self.gate = Gate(*shared, world.clock)
        world.log.listen(self.loop.on_events)

    async def replace(self) -> None:
        await self.gate.append(Role.PERSON, "person", [Draft(NOTICE)])

    @property
    def is_open(self) -> bool:
        return "wish" in self.view().effects.open


def test_what_is_replaced_while_the_disk_takes_its_beginning_no_more_ends_no_loop() -> None:
    async def story(world: World) -> None:
        scene, may_commit = Scene(world), asyncio.Event()

        async def one_more() -> None:
            await may_commit.wait()
            world.log.commit = full

        async def full() -> None:
            raise LogUnavailable("the disk is full")

        world.log.commit = one_more
        async with asyncio.TaskGroup() as group:
            newer = group.create_task(scene.replace())
            await asyncio.sleep(0.1)
            group.create_task(scene.loop.run())
            await asyncio.sleep(0.1)
            assert scene.is_open
            may_commit.set()
            await newer
            await asyncio.sleep(RETRY)
            assert not scene.is_open
            world.log.commit = None
            scene.loop.nudge()
            await asyncio.sleep(1)
            assert len(scene.notify.done) == 1
            scene.loop.stop()

    simulate(story, {})


def test_what_is_replaced_before_it_is_begun_once_more_is_not_begun() -> None:
    async def story(world: World) -> None:
        begun = [Draft(EffectExecuting(attempt=number), subject="wish", cause="wish") for number in (1, 2)]
        scene = Scene(world, *begun, Draft(Paused()))
        async with asyncio.TaskGroup() as group:
            group.create_task(scene.loop.run())
            await asyncio.sleep(1)
            await scene.replace()
            assert not scene.is_open
            await world.log.append(Draft(Resumed()))
            await asyncio.sleep(60)
            assert scene.notify.done == [one.id for one in world.events("effect") if one.id != "wish"]
            scene.loop.stop()

    simulate(story, {})
