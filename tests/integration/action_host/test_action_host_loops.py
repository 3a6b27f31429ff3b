"""The daemon's own loops use an engine's hands as they use what is built in, also when others take over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pulse_adapters.action_host.hosts import ChildActionHosts
from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryVitals
from pulse_core.execute import ExecutorLoop, ExecutorRegistry
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, EffectExecuting
from pulse_core.model.payload import Role
from pulse_core.ports.engine import ReservedNames, Revision
from pulse_core.record.gate import Gate
from pulse_core.record.journal import Journal
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings
from pulse_core.watch.loop import WatchLoop
from tests.integration.action_host.action_host_scene import MEMORY, executor, until, watcher, written


async def nobody_waits() -> None:
    """Where nothing ticks, nothing is answered."""


@dataclass
class Loops:
    """A watch loop and an executor loop at work, with what they need around them."""

    log: MemoryLog
    watch: WatchLoop
    executor_registry: ExecutorRegistry
    gate: Gate
    host: ChildActionHosts
    woken: list[str]
    failed: list[tuple[str, str]]

    async def promote(self, revision: Revision) -> None:
        """Let this revision's hands be in force."""
        hands = await self.host.start(revision, MEMORY, ReservedNames(), self.failed.append)
        self.watch.register(hands.watchers)
        self.executor_registry.register(hands.executors)
        self.hands = hands

    async def wish(self, key: str, **params: object) -> str:
        """Have a person wish for a beep; the effect's id."""
        effect = Effect(action="beep", key=key, params=params)
        return (await self.gate.append(Role.PERSON, "person", [Draft(effect)]))[0].event.id

    def life(self, id_: str) -> list[str]:
        """What happened to an effect."""
        return [event.kind for event in self.log.events if event.subject == id_]


@asynccontextmanager
async def at_work(*begun: Effect) -> AsyncIterator[Loops]:
    """Loops that run until the test is done. begun: effects that an earlier daemon began, and died."""
    clock, view, settings = VirtualClock(asyncio.get_running_loop().time), View(), Settings()
    log, executor_registry = (
        MemoryLog(clock),
        ExecutorRegistry({"notify": MemoryExecutor("notify")}, not begun),
    )
    journal = Journal(log, clock, iter(f"id-{n}" for n in range(10**6)).__next__)
    woken: list[Any] = []
    failed: list[Any] = []
    watch = WatchLoop(
        (), journal, MemoryVitals(), clock, woken.append, lambda *fault: failed.append(fault), nobody_waits
    )
    acting = ExecutorLoop(
        journal,
        view,
        lambda: settings,
        executor_registry,
        clock,
        Random(0),
        lambda *fault: failed.append(fault),
    )
    host = ChildActionHosts(clock, lambda: watch.windows)
    log.listen(view.on_events)
    log.listen(acting.on_events)
    for effect in begun:
        wish = Draft(effect, subject=effect.key, id=effect.key)
        await journal.append(wish, Draft(EffectExecuting(), subject=effect.key, cause=effect.key))
    loops = Loops(
        log,
        watch,
        executor_registry,
        Gate(journal, view, lambda: settings, executor_registry, clock),
        host,
        woken,
        failed,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch.run()), group.create_task(acting.run())]
        await asyncio.sleep(0)
        try:
            yield loops
        finally:
            for task in tasks:
                task.cancel()
            if hasattr(loops, "hands"):
                await loops.hands.close()


async def test_samples_arrive_and_wake_and_effects_are_carried_out(tmp_path: Path) -> None:
    look = watcher("return Reading({'n': 7})", interval=1, wake="return window.last.data['n'] == 7")
    act = executor("return Result({'said': params.path})")
    async with at_work() as loops:
        await loops.promote(written(tmp_path, look, act))
        await until(lambda: loops.woken)
        assert loops.watch.windows["queue"].values("n")[-1] == 7
        id_ = await loops.wish("k", path="hello")
        await until(lambda: loops.life(id_)[-1:] == ["effect-acked"])
        assert '"said":"hello"' in loops.log.events[-1].data
        assert not loops.failed


async def test_a_failing_watcher_is_told_once_with_its_place(tmp_path: Path) -> None:
    async with at_work() as loops:
        await loops.promote(written(tmp_path, watcher("raise ValueError('no')", interval=1)))
        await until(lambda: loops.failed)
        assert loops.failed[0][0] == "watcher:queue"
        assert loops.failed[0][1].startswith("ValueError: no (own.py:")


async def test_what_is_under_way_ends_with_the_old_hands_while_the_new_ones_serve(tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    slow = executor(
        f"while not os.path.exists({str(go_on)!r}):\n    await asyncio.sleep(0.01)\nreturn Result({{'by': 'old'}})",
        policy="Policy(Safety.AT_MOST_ONCE, timeout=30)",
    )
    new = executor("return Result({'by': 'new'})")
    async with at_work() as loops:
        await loops.promote(written(tmp_path / "old", watcher("return Reading({'by': 'old'})"), slow))
        first, old = await loops.wish("first"), loops.hands
        await until(lambda: "effect-executing" in loops.life(first))
        await loops.promote(written(tmp_path / "new", new))
        old.retire(30)
        assert "queue" not in loops.watch.windows
        second = await loops.wish("second")
        await until(lambda: loops.life(second)[-1] == "effect-acked")
        go_on.touch()
        await until(lambda: loops.life(first)[-1] == "effect-acked")
        told = [event.data for event in loops.log.events if event.kind == "effect-acked"]
        assert ['"by":"new"' in told[0], '"by":"old"' in told[1]] == [True, True]
        await until(lambda: old.supervisor is not None and not old.supervisor.alive)


async def test_an_effect_with_wrong_params_fails_with_the_words_of_its_model(tmp_path: Path) -> None:
    async with at_work() as loops:
        await loops.promote(written(tmp_path, executor("return Result({})", params="n: int")))
        id_ = await loops.wish("k")
        await until(lambda: loops.life(id_)[-1:] == ["effect-failed"])
        assert "n: " in loops.log.events[-1].data


async def test_an_effect_that_nobody_carries_out_is_refused(tmp_path: Path) -> None:
    async with at_work() as loops:
        with pytest.raises(UnknownName, match="no executor 'beep'"):
            await loops.wish("k", n=1)
        assert not loops.log.events


async def test_an_at_most_once_effect_whose_host_dies_is_settled_as_unknown(tmp_path: Path) -> None:
    dies = executor("os._exit(3)", policy="Policy(Safety.AT_MOST_ONCE, timeout=60, retries=3)")
    async with at_work() as loops:
        await loops.promote(written(tmp_path, dies))
        id_ = await loops.wish("k")
        await until(lambda: loops.life(id_)[-1:] == ["effect-unknown"])
        assert loops.life(id_) == ["effect-executing", "effect-unknown"]
        assert "ended with status 3 (own.py:" in loops.log.events[-1].data
        assert [whose for whose, _ in loops.failed] == ["executor:beep"]


BY_CLASS = "Policy(Safety(params.path or 'at-most-once'), timeout=60, retries=params.n, backoff=0.01)"


def interrupted(path: str) -> Effect:
    """An effect whose class is in its params."""
    return Effect(action="beep", key=path, params={"path": path})


async def test_after_a_crash_each_effect_is_judged_by_the_class_that_its_params_give_it(
    tmp_path: Path,
) -> None:
    source = executor(
        f"open({str(tmp_path / 'done')!r}, 'a').write(params.path + ' ')\nreturn Result({{'by': 'deed'}})",
        policy=BY_CLASS,
        params="path: str = ''\nn: int = 0",
        verify="return Result({'by': 'look'})",
    )
    classes = ("idempotent", "verify-first", "at-most-once")
    ends = ("effect-acked", "effect-acked", "effect-unknown")
    async with at_work(*map(interrupted, classes)) as loops:
        await loops.promote(written(tmp_path / "engine", source))
        await until(lambda: tuple(loops.life(one)[-1] for one in classes) == ends)
        told = {event.subject: event.data for event in loops.log.events if event.kind in ends}
        assert ['"by":"deed"' in told["idempotent"], '"by":"look"' in told["verify-first"]] == [True, True]
        assert "must not run twice" in told["at-most-once"]
        assert (tmp_path / "done").read_text() == "idempotent "


async def test_the_loop_tries_again_as_often_as_the_params_say(tmp_path: Path) -> None:
    source = executor("raise PulseError('no')", policy=BY_CLASS, params="path: str = ''\nn: int = 0")
    async with at_work() as loops:
        await loops.promote(written(tmp_path, source))
        for n, path, attempts in ((2, "idempotent", 3), (0, "idempotent", 1), (2, "at-most-once", 1)):
            id_ = await loops.wish(f"{path}-{n}", path=path, n=n)
            await until(lambda id_=id_: loops.life(id_)[-1:] == ["effect-failed"])  # type: ignore[misc]  # a default
            assert loops.life(id_).count("effect-executing") == attempts
