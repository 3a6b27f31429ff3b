"""Whatever the engine's side raises, wherever it is asked: the daemon goes on, in the end without it, and says so."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulse_adapters.memory.action_host import Actions, MemoryActionHosts
from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.engine.engine_context import EngineParts
from pulse_core.engine.engine_controller import NO_HOST
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, PromoteRequested, ReloadRequested, RollbackRequested
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Reading, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner
from tests.long_form import sampled
from tests.simulation.world import World, simulate

SETTINGS: dict[str, Any] = {
    "daemon": {"tick_ms": 2_000, "executor_scan_interval_ms": 60_000},
    "process": [{"name": "gateway", "start": ["gateway"], "restart": {"healthy_after": "1s"}}],
}


async def beeps(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    verdict = await inner(prev, curr)
    return verdict.plus(Effect(action="beep", key=f"beep-{curr.now.at // 5_000_000}"))


@dataclass
class Queue:
    """A watcher of the engine."""

    name: str = "queue"
    key: str = "queue"
    interval: float = 5.0
    timeout: float = 1.0
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    async def collect(self) -> Reading:
        return Reading({"waiting": 1})

    def should_wake(self, window: Window) -> bool:
        return False


class Bug(Exception):
    """Nothing that anybody expects."""


@dataclass
class Flaws:
    """Which verb of the engine's side raises, or answers, what nobody expects; none at first."""

    verb: str = ""
    error: Callable[[], BaseException] = Bug
    times: float = float("inf")

    def strike(self, verb: str) -> None:
        if verb == self.verb and self.times > 0:
            self.times -= 1
            raise self.error()


class Flawed:
    """Anything of the engine's side, whose verbs raise as the flaws say; what it makes is flawed, too."""

    def __init__(self, true: Any, name: str, flaws: Flaws) -> None:
        self.__dict__.update(_true=true, _name=name, _flaws=flaws)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._true, name, value)

    def __getattr__(self, name: str) -> Any:
        verb, flaws, found = f"{self._name}.{name}", self._flaws, getattr(self._true, name)
        if name == "executors":
            return {key: Flawed(one, "executor", flaws) for key, one in found.items()}
        if name == "watchers":
            return [Flawed(one, "watcher", flaws) for one in found]
        if not callable(found) or isinstance(found, type):
            return found
        if not asyncio.iscoroutinefunction(found):

            def plain(*given: Any, **named: Any) -> Any:
                flaws.strike(verb)
                return found(*given, **named)

            return plain

        async def begun(*given: Any, **named: Any) -> Any:
            flaws.strike(verb)
            made = await found(*given, **named)
            return Flawed(made, MADE[self._name], flaws) if name == "start" else made

        return begun


MADE = {"hosts": "host", "action_hosts": "action_host"}
VERBS = (
    "revisions.head", "revisions.ensure", "revisions.point_main", "revisions.going_back",
    "hosts.start", "host.feed", "host.fold", "host.quarantine", "host.keep", "host.close",
    "action_hosts.start", "action_host.frozen", "action_host.retire", "action_host.close",
    "watcher.collect", "watcher.should_wake",
    "executor.policy", "executor.check", "executor.execute", "executor.verify",
)  # fmt: skip
"""All that the daemon asks of the engine's side."""
ERRORS: dict[str, Callable[[], BaseException]] = {
    "a bug": lambda: Bug("?"),
    "a cancellation of nobody": asyncio.CancelledError,
    "several": lambda: ExceptionGroup("several", [Bug("?"), KeyError("x")]),
}


def flawed_engine(flaws: Flaws) -> EngineParts:
    actions: dict[str, Actions] = {
        name: ((Queue(),), (MemoryExecutor("beep"),)) for name in ("first", "second", "third")
    }
    revisions = MemoryRevisions(dict.fromkeys(actions, (beeps,)), "first", actions=actions)
    return EngineParts(
        Flawed(revisions, "revisions", flaws),
        Flawed(MemoryHosts(revisions), "hosts", flaws),
        Flawed(MemoryActionHosts(actions), "action_hosts", flaws),
    )


async def restarts_soon(world: World) -> None:
    """What is guarded is back within a few milliseconds of its death."""
    before = len(world.host.starts)
    world.host.kill("gateway")
    await asyncio.sleep(0.1)
    assert len(world.host.starts) == before + 1
    await asyncio.sleep(3)


def answered(world: World, asked: Event) -> list[str]:
    return [event.kind for event in world.events() if event.cause == asked.id]


CASES = [(verb, "a bug") for verb in VERBS] + [
    (verb, error)
    for verb in ("revisions.ensure", "host.fold", "host.close", "watcher.collect", "executor.execute")
    for error in ("a cancellation of nobody", "several")
]


@pytest.mark.parametrize(("verb", "error"), sampled(CASES, 3))
def test_no_exception_of_the_engines_side_ends_or_holds_up_the_daemon(verb: str, error: str) -> None:
    flaws = Flaws(error=ERRORS[error])

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(2)
        flaws.verb = verb
        await restarts_soon(world)
        asked = await world.ask(PromoteRequested(previous="first"), "second")
        await restarts_soon(world)
        back = await world.ask(RollbackRequested(), "")
        await restarts_soon(world)
        await asyncio.sleep(20)
        assert answered(world, asked) in (["promote"], ["promote-refused"])
        assert answered(world, back) in (["rollback"], ["promote-refused"])
        assert world.daemon is not None
        world.daemon.report()
        await restarts_soon(world)
        flaws.verb = ""
        await world.ask(ReloadRequested())
        mended = world.clock.now()
        await asyncio.sleep(40)
        assert world.events("effect-acked")[-1].moment.since(mended) > 10_000_000  # the engine acts again
        await world.end()

    simulate(story, SETTINGS, engine=flawed_engine(flaws))


def test_a_loop_that_ends_is_an_error_of_its_commit_and_begins_again() -> None:
    flaws = Flaws("host.fold", lambda: Bug("no such number"), times=1)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        (event,) = world.events("error")
        data = json.loads(event.data)
        assert event.subject == "engine"
        assert data["commit"] == "first"
        assert data["message"] == "the loop 'whole fold' ended: Bug: no such number"
        assert world.events("effect-acked")[-1].mono > 5_000_000

    simulate(story, SETTINGS, engine=flawed_engine(flaws))


def test_an_engine_whose_loops_end_again_and_again_is_set_aside_and_people_are_told() -> None:
    flaws = Flaws("host.fold")

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        (raised,) = world.events("condition-raised", subject="engine-set-aside")
        assert "first was set aside: its loops ended 5 times within" in raised.data
        assert "the loop 'whole fold' ended: Bug" in raised.data
        (notice,) = world.events("effect", subject="notify:engine:set-aside")
        assert "let it run again with: upulse daemon reload" in notice.data
        assert world.daemon is not None
        report = world.daemon.report()["engine"] or NO_HOST
        assert report["runs"] is None
        assert "ended 5 times" in (report["set_aside"] or "")
        assert not world.daemon.watch._enlisted
        flaws.verb = ""
        await world.ask(ReloadRequested())
        await asyncio.sleep(10)
        assert (world.daemon.report()["engine"] or NO_HOST)["runs"] == "first"
        assert world.events("condition-cleared", subject="engine-set-aside")
        assert len(world.events("effect", subject="notify:engine:set-aside")) == 2

    simulate(story, SETTINGS, engine=flawed_engine(flaws))


def test_another_commit_ends_the_setting_aside() -> None:
    flaws = Flaws("host.fold")

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        flaws.verb = ""
        await world.ask(PromoteRequested(previous="first"), "second")
        await asyncio.sleep(10)
        assert world.daemon is not None
        assert (world.daemon.report()["engine"] or NO_HOST)["runs"] == "second"
        assert world.events("condition-cleared", subject="engine-set-aside")

    simulate(story, SETTINGS, engine=flawed_engine(flaws))
