"""A capability that raises, wherever it is asked, is named and gone on without: survival does not notice."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pulse_core import composition
from pulse_core.app.status import is_wrong
from pulse_core.capability import Capability
from pulse_core.composition import FOLD
from pulse_core.model.errors import Refused
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, ProcessDied
from pulse_core.model.verdict import Verdict
from pulse_core.projections.fold import advance
from pulse_core.projections.state import PROCESSES, Snapshot
from pulse_core.rules import Inner, Rule
from pulse_core.tasks.events import ProjectSet, TaskCreated
from pulse_core.tasks.projection import TASKS
from pulse_core.testing import given
from pulse_core.tick import RuleFolds, rule_folds
from tests.simulation.world import World, simulate

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}
TASK = TaskCreated(project="app", title="one")
WHY = "its projection pending-tasks raised KeyError: 'no such task'"


def no_tasks(value: Any, events: Iterable[Event]) -> Any:
    """A fold that fails at the first task."""
    if any(event.kind == TaskCreated.kind for event in events):
        raise KeyError("no such task")
    return TASKS.after(value, events)


def fails(*given: object) -> Any:
    """What fails whenever it is asked."""
    raise ValueError("no such luck")


def fails_later(*given: object) -> Any:
    """What fails when its answer is read."""
    yield from ()
    raise ValueError("no such luck")


async def is_guarded(world: World) -> None:
    """A death is answered."""
    before = len(world.host.starts)
    world.host.kill("gateway")
    await asyncio.sleep(1)
    assert len(world.host.starts) == before + 1


def test_a_projection_that_raises_sets_its_capability_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        world.may_break = True
        await world.start()
        await world.ask(ProjectSet(), "app")
        await asyncio.sleep(90)  # so that there is a checkpoint
        with monkeypatch.context() as broken:
            broken.setitem(FOLD.projections, TASKS.name, replace(TASKS, after=no_tasks))
            for _ in range(2):  # its next start, too
                daemon = await world.start() if world.daemon is None else world.daemon
                if not world.events(TaskCreated.kind):
                    await world.ask(TASK, "task_aaaaaa")
                await asyncio.sleep(180)
                await is_guarded(world)
                status = daemon.report()
                assert status["set_aside"] == {
                    "tasks": WHY,
                    **dict.fromkeys(("mcp", "agents", "guided_runs"), "it needs tasks"),
                }
                assert is_wrong(status)
                with pytest.raises(Refused, match="tasks is set aside: its projection"):
                    await world.ask(TASK, "task_bbbbbb")
                await world.end()
                world.daemon = None
            told = [event.subject for event in world.events("error")]
            assert sorted(told) == sorted(2 * [f"capability:{name}" for name in status["set_aside"]])
        daemon = await world.start()  # of a version in which that is mended
        assert "task_aaaaaa" in daemon.parts.view().of(TASKS).tasks
        assert not daemon.report()["set_aside"]
        await world.ask(TASK, "task_bbbbbb")

    simulate(story, ONE)


def test_what_the_core_itself_fails_to_remember_is_raised() -> None:
    died = given().event(ProcessDied(pid=1, healthy=True, evidence="it is gone"), "gateway")
    with pytest.raises(ValueError, match="no such luck"):
        advance(FOLD.start, [replace(PROCESSES, after=fails)], [died], 1)


@pytest.mark.parametrize("failing", [fails, fails_later])
def test_a_capability_that_can_say_nothing_is_gone_on_without(
    failing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(one: Capability) -> Capability:
        return replace(one, status=failing, holds=failing, programs=failing, seen=fails)

    monkeypatch.setattr(composition, "LOADED", tuple(map(broken, composition.LOADED)))

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(1)
        await is_guarded(world)
        status = daemon.report()
        said = ["tasks can't say how it stands: ValueError: no such luck"]
        assert status["capabilities"]["tasks"] == said
        assert said[0] in status["programs"]
        assert "can't be asked for: ValueError" in status["set_aside"]["silences"]

    simulate(story, ONE)


async def test_a_rule_that_holds_up_the_daemon_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [0.0], list[str]()
    monkeypatch.setattr(rule_folds, "stopwatch", lambda: lambda: now[0])

    def rule(name: str, *took: float) -> Rule:
        times = iter(took)

        async def computes(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
            asked.append(name)
            now[0] += next(times, 0)
            return await inner(prev, curr)

        computes.__name__ = name
        return computes

    async def nobody(effects: Sequence[Effect]) -> Collection[str]:
        return ()

    slow, busy = rule("slow", 1, 1, 0, 1.2, 1.2, 1.2), rule("busy", *6 * [0.9])
    folds, curr = RuleFolds((), None, nobody, (slow, busy)), given().snapshot
    faults = [fault for _ in range(8) for fault in (await folds.whole(curr, curr)).faults]
    assert {fault.whose for fault in faults} == {"rule:slow"}
    assert [fault.message for fault in faults[-2:]] == [
        "held up the daemon for 1.2 s",
        "held up the daemon for 1.2 s; it is asked no more",
    ]
    assert (len(faults), asked.count("slow"), asked.count("busy")) == (5, 6, 8)
    assert list(folds.left_out) == ["slow"]
