"""The watchers and executors of the engine in force, in virtual time: they come, change and go with its commit."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from pulse_adapters.memory.action_host import Actions, MemoryActionHost, MemoryActionHosts
from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_core.engine.engine_context import EngineParts
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EngineDisabled, RollbackRequested
from pulse_core.model.names import SETTLING
from pulse_core.model.verdict import Verdict
from pulse_core.ports.executor import Policy, Safety
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule
from tests.simulation.test_engine import QUICK, promoted, spares, started
from tests.simulation.test_senses import Probe, broken
from tests.simulation.world import World, simulate


async def beeps(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).plus(Effect(action="beep", key="beep"))


class Bench:
    """An engine in memory: each commit but the first has one rule and these watchers and executors."""

    def __init__(self, rule: Rule = spares, **actions: Actions) -> None:
        engines: dict[str, Sequence[Rule] | None] = {"first": (spares,), **dict.fromkeys(actions, (rule,))}
        self.revisions = MemoryRevisions(engines, "first", actions=actions)
        self.rule_hosts, self.action_hosts = MemoryHosts(self.revisions), MemoryActionHosts(actions)

    def tell(self, story: Callable[[World], Awaitable[None]], settings: Mapping[str, Any] = QUICK) -> None:
        simulate(
            story, dict(settings), engine=EngineParts(self.revisions, self.rule_hosts, self.action_hosts)
        )

    @property
    def closed(self) -> list[bool]:
        """Of each action host that was begun."""
        return [host.closed for host in self.action_hosts.started]


def windows(world: World) -> dict[str, tuple[object, ...]]:
    assert world.daemon is not None
    return {key: window.values("value") for key, window in world.daemon.watch.windows.items()}


def former(world: World) -> int:
    """How many retired hosts are kept."""
    assert world.daemon is not None
    assert world.daemon.engine_controller is not None
    return len(world.daemon.engine_controller.host_supervisor._former)


def beep(deed: Callable[[Event], Awaitable[None]]) -> MemoryExecutor:
    return MemoryExecutor("beep", Policy(Safety.AT_MOST_ONCE, timeout=60), deed)


def test_a_commits_watchers_and_executors_serve_as_soon_as_it_is_in_force_and_go_with_it() -> None:
    executor = MemoryExecutor("beep")
    bench = Bench(beeps, second=((Probe("queue", lambda: 7),), (executor,)), third=((), ()))

    async def story(world: World) -> None:
        await started(world)
        assert not bench.action_hosts.started
        await promoted(world, "second")
        await asyncio.sleep(2)
        assert windows(world)["queue"] == (7,)
        (wish,) = world.events("effect", subject="beep")
        assert world.events("effect-acked", subject=wish.id)
        assert executor.done == [wish.id]
        await promoted(world, "third", "second")
        await asyncio.sleep(2)
        assert "queue" not in windows(world)
        assert bench.closed == [True]

    bench.tell(story)


def test_what_is_under_way_ends_with_the_old_host_while_the_new_one_serves() -> None:
    go_on = asyncio.Event()

    async def waits(event: Event) -> None:
        await go_on.wait()

    old, new = beep(waits), MemoryExecutor("beep")
    bench = Bench(beeps, second=((), (old,)), third=((Probe("queue", lambda: 7),), (new,)))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        await promoted(world, "third", "second")
        await asyncio.sleep(2)
        assert (bench.closed, "queue" in windows(world)) == ([False, False], True)
        assert former(world) == 1
        go_on.set()
        await asyncio.sleep(0.01)
        assert (len(old.done), bench.closed) == (1, [True, False])
        assert former(world) == 0
        assert world.events("effect-acked", subject=old.done[0])

    bench.tell(story)


def test_a_daemon_that_ends_leaves_no_host_open() -> None:
    async def waits(event: Event) -> None:
        await asyncio.Event().wait()

    old = beep(waits)
    bench = Bench(beeps, second=((), (old,)), third=((), (MemoryExecutor("beep"),)))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        await promoted(world, "third", "second")
        assert bench.closed == [False, False]
        await world.end()
        assert bench.closed == [True, True]
        assert (len(old.began), old.done) == (1, [])

    bench.tell(story)


def test_a_commit_whose_actions_cannot_be_loaded_is_refused_and_leaves_no_host_behind() -> None:
    bench = Bench(second=((), (MemoryExecutor("beep"),)))
    bench.action_hosts.engines = {"second": None}

    async def story(world: World) -> None:
        await started(world)
        answer = await promoted(world, "second")
        assert answer.kind == "promote-refused"
        assert "engine.py:1" in answer.data
        assert [host.closed for host in bench.rule_hosts.started] == [False, True]

    bench.tell(story)


def test_a_watcher_that_breaks_after_a_promote_has_it_taken_back_with_its_actions() -> None:
    bench = Bench(second=((Probe("queue", broken, interval=1),), ()))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(300)
        assert {event.subject for event in world.events("error")} == {"watcher:queue"}
        assert [event.subject for event in world.events("rollback")] == [bench.revisions.main]
        assert (bench.closed, "queue" in windows(world)) == ([True], False)

    bench.tell(story)


def test_what_pulse_has_itself_is_not_taken_over_and_that_is_said() -> None:
    other = MemoryExecutor("notify")
    bench = Bench(second=((Probe("process-alive", lambda: 0),), (other,)))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(6)
        errors = [(event.subject, json.loads(event.data)["message"]) for event in world.events("error")]
        assert errors == [
            ("engine", "watcher:process-alive: left out: another one has this name already"),
            ("engine", "executor:notify: left out: another one has this name already"),
        ]
        assert world.daemon is not None
        assert [one.name for one in world.daemon.watch.watchers].count("process-alive") == 1

    bench.tell(story)


def test_a_rollback_brings_back_the_actions_of_the_commit_before() -> None:
    bench = Bench(second=((Probe("queue", lambda: 7),), ()), third=((), ()))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await promoted(world, "third", "second")
        await world.ask(RollbackRequested(), "")
        await asyncio.sleep(6)
        assert windows(world)["queue"]
        assert bench.closed == [True, False]

    bench.tell(story)


def test_a_commits_watchers_and_executors_stand_still_while_another_one_begins_and_end_with_a_rollback() -> (
    None
):
    sleeper = MemoryExecutor("beep", Policy(Safety.AT_MOST_ONCE, timeout=DAY), sleeps)
    actions = (Probe("queue", lambda: 7),), (sleeper,)
    bench = Bench(beeps, second=actions, third=actions, broken=actions)
    bench.revisions.engines["broken"] = None
    seen = list[list[bool]]()

    class Listing(MemoryActionHosts):
        async def start(self, *given: Any) -> MemoryActionHost:
            seen.append([host.is_frozen for host in self.started if not host.closed])
            return await super().start(*given)

    bench.action_hosts = Listing(bench.action_hosts.engines)

    def frozen() -> list[bool]:
        return [host.is_frozen for host in bench.action_hosts.started]

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        await promoted(world, "broken", "second")
        await asyncio.sleep(2)
        assert world.events("promote-refused")
        assert (seen, frozen(), bench.closed) == ([[]], [False], [False])
        await promoted(world, "third", "second")
        await asyncio.sleep(2)
        assert bench.closed == [False, False], "what an executor is at goes on for a while after a promote"
        await world.ask(RollbackRequested(), "second")
        await asyncio.sleep(0.1)
        assert seen[1:] == [[True], [True, True]]
        assert bench.closed == [True, True, False], "but not after a rollback"
        assert frozen() == [False] * 3

    bench.tell(story, NARROW)


DAY = 86_400
NARROW = {"daemon": {"tick_ms": 1_000, "concurrency": 4, "stop_grace": "10s"}}
NOTICE = Effect(action="notify", key="hello", params={"title": "hello"})


async def sleeps(event: Event) -> None:
    await asyncio.sleep(DAY)


async def wishes_for_many(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    many = [Effect(action=f"sleep-{number % 4}", key=f"my:{number}") for number in range(24)]
    return (await inner(prev, curr)).plus(*many)


def sleepers(safety: Safety, **policy: Any) -> Actions:
    policies = Policy(safety, timeout=DAY, **policy)
    return (), [MemoryExecutor(f"sleep-{number}", policies, sleeps) for number in range(4)]


def outcomes(world: World) -> Counter[str]:
    return Counter(event.kind for event in world.events() if event.kind in SETTLING)


async def ended(world: World, bench: Bench, how: str) -> None:
    if how == "rollback":
        await world.ask(RollbackRequested(why="it sleeps"), "")
    elif how == "promote":
        await promoted(world, "third", "second")
    else:
        await world.ask(EngineDisabled(why="it sleeps"))
    await asyncio.sleep(10.2)
    assert bench.closed == [True]


@pytest.mark.parametrize("how", ["rollback", "promote", "disable"])
@pytest.mark.parametrize(
    ("safety", "fate"), [(Safety.AT_MOST_ONCE, "effect-unknown"), (Safety.IDEMPOTENT, "effect-failed")]
)
def test_what_a_commits_executors_are_at_ends_with_it_and_frees_its_slots(
    how: str, safety: Safety, fate: str
) -> None:
    bench = Bench(wishes_for_many, second=sleepers(safety, retries=3), third=((), ()))
    bench.revisions.engines["third"] = (spares,)

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        assert len(world.events("effect-executing")) == 5
        await ended(world, bench, how)
        assert outcomes(world)[fate] == (5 if how == "rollback" else {"effect-unknown": 5}.get(fate, 24))
        assert "broken off: its host was closed" in world.events(fate)[0].data
        assert world.daemon is not None
        assert (str(world.daemon.executor.slots), world.daemon.parts.view().effects.open) == ("", {})

    bench.tell(story, NARROW)


def test_what_a_rolled_back_commits_rules_have_wished_for_is_cancelled_and_what_people_have_goes_on() -> None:
    bench = Bench(wishes_for_many, second=sleepers(Safety.AT_MOST_ONCE))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        mine = await world.ask(Effect(action="sleep-0", key="mine"))
        assert world.events("effect-executing", subject=mine.id), "a person's has a slot, whatever rules hold"
        await world.ask(RollbackRequested(why="it sleeps"), "")
        await asyncio.sleep(0.1)
        assert outcomes(world) == {"effect-cancelled": 19, "effect-unknown": 6}
        cancelled = world.events("effect-cancelled")[0]
        words = "cancelled by pulse (second, whose rules wished for it, was taken back)"
        assert json.loads(cancelled.data)["why"] == words
        notice = await world.ask(NOTICE)
        await asyncio.sleep(0.1)
        assert world.events("effect-acked", subject=notice.id)

    bench.tell(story, NARROW)


def test_what_several_commits_have_wished_for_is_cancelled_with_them_and_each_is_named_for_its_own() -> None:
    def wishes(name: str) -> Rule:
        async def wish(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
            notice = Effect(action="notify", key=f"notify:mine-{name}", params={"title": name})
            return (await inner(prev, curr)).plus(notice)

        return wish

    bench = Bench(second=((), ()), third=((), ()))
    bench.revisions.engines |= {name: (wishes(name),) for name in ("second", "third")}

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        await promoted(world, "third", "second")
        await asyncio.sleep(2)
        await world.ask(RollbackRequested(why="no good"), "first")
        await asyncio.sleep(1)
        keys = {one.id: one.subject for one in world.events("effect")}
        told = {keys[one.subject]: json.loads(one.data)["why"] for one in world.events("effect-cancelled")}
        assert told == {
            f"notify:mine-{name}": f"cancelled by pulse ({name}, whose rules wished for it, was taken back)"
            for name in ("second", "third")
        }

    bench.tell(story, {**NARROW, "notify": {"urls": ["json://one"], "group": "1h"}})


def test_disabling_ends_the_host_of_an_earlier_commit_at_once() -> None:
    bench = Bench(beeps, second=((), (beep(sleeps),)), third=((), (MemoryExecutor("beep"),)))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(2)
        await promoted(world, "third", "second")
        assert bench.closed == [False, False]
        await world.ask(EngineDisabled(why="no more"))
        await asyncio.sleep(0.1)
        assert bench.closed == [True, True]

    bench.tell(story)


def test_a_persons_effect_begins_while_the_executors_of_an_engine_sleep() -> None:
    bench = Bench(wishes_for_many, second=sleepers(Safety.AT_MOST_ONCE))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(20)
        notice = await world.ask(NOTICE)
        await asyncio.sleep(0.1)
        assert world.events("effect-acked", subject=notice.id)
        assert world.daemon is not None
        assert (
            str(world.daemon.executor.slots)
            == "sleep-0 2 of rules, sleep-1 1 of rules, sleep-2 1 of rules, sleep-3 1 of rules"
        )

    bench.tell(story, NARROW)


def test_who_dies_is_started_though_a_restart_that_a_rule_wished_for_waits_for_a_slot() -> None:
    """Only one restart of a process is open at a time: the engine's own one would keep survival from starting it."""

    async def never(event: Event) -> None:
        await asyncio.Event().wait()

    async def greedy(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        wishes = [Effect(action=f"beep{number % 2}", key=f"beep:{number}") for number in range(5)]
        wishes.append(Effect(action="run-command", key="mine:run", params={"argv": ["x"]}))
        wishes.append(Effect(action="restart-process", key="mine", params={"process": "gateway"}))
        return (await inner(prev, curr)).plus(*wishes)

    patient = Policy(Safety.AT_MOST_ONCE, timeout=10**8)
    own = tuple(MemoryExecutor(f"beep{number}", patient, never) for number in range(2))
    bench = Bench(greedy, second=((), own))

    async def story(world: World) -> None:
        world.executors["run-command"] = MemoryExecutor("run-command", patient, never)
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(400)
        (wish,) = world.events("effect", subject="mine")
        assert not world.events(subject=wish.id), "it waits"
        before = len(world.host.starts)
        world.host.kill("gateway")
        await asyncio.sleep(0.1)
        (end,) = world.events(subject=wish.id)
        assert json.loads(end.data)["why"] == "gateway went down in the meantime, and survival starts it"
        assert len(world.host.starts) == before + 1
        assert not world.host.started_twice

    bench.tell(story, {"daemon": {"concurrency": 4}, "process": [{"name": "gateway", "start": ["gateway"]}]})
