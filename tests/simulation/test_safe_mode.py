"""Safe mode in virtual time: what crashes lead to, what is left out, and how it is left."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions
from pulse_core.engine.engine_context import EngineParts
from pulse_core.model.event import Draft
from pulse_core.model.kinds import (
    ConditionRaised,
    EngineDisabled,
    EngineEnabled,
    PromoteRequested,
    RollbackRequested,
    SafeModeLeft,
)
from pulse_core.model.names import NETWORK, NOT_WATCHED
from pulse_core.projections.incidents import Incidents, after
from tests.long_form import sampled
from tests.simulation.test_engine import promoted, raises, spares, started
from tests.simulation.test_senses import Probe
from tests.simulation.world import World, simulate

SETTINGS: dict[str, Any] = {
    "daemon": {"tick_ms": 5_000},
    "process": [{"name": "gateway", "start": ["gateway"]}],
}
HOUR = 3_600.0
Story = Callable[[World], Awaitable[None]]


class Setup:
    """A world with an engine, with or without plugins, and with an optional watcher."""

    def __init__(self, plugins: bool = True) -> None:
        self.revisions = MemoryRevisions(
            {"first": (spares,), "second": (spares,), "bad": (raises,), "broken": None}, "first"
        )
        self.hosts, self.bare_hosts = MemoryHosts(self.revisions), MemoryHosts(self.revisions)
        bare = EngineParts(self.revisions, self.bare_hosts) if plugins else None
        self.parts = EngineParts(self.revisions, self.hosts, without_plugins=bare)
        self.needed, self.optional = Probe("needed", lambda: 1), Probe("optional", lambda: 1)

    def tell(self, story: Story, **engine: Any) -> World:
        return simulate(
            story,
            {**SETTINGS, "engine": engine},
            engine=self.parts,
            watchers=(self.needed,),
            optional_watchers=(self.optional,),
        )

    @property
    def alive(self) -> tuple[int, int]:
        """How many hosts with plugins are alive, and how many without."""
        with_, without = (sum(one.alive for one in hosts.started) for hosts in (self.hosts, self.bare_hosts))
        return with_, without


async def crashed(world: World, times: int, setup: Setup) -> None:
    """So many daemons in a row, each killed seconds after its start; then one that is started."""
    for _ in range(times):
        await started(world)
        await asyncio.sleep(5)
        await world.crash()
        for host in (*setup.hosts.started, *setup.bare_hosts.started):
            host.alive = False
    await started(world)
    setup.optional.looks.clear()
    await asyncio.sleep(20)


def state(world: World) -> Any:
    assert world.daemon is not None
    return world.daemon.report()


async def gateway_is_back(world: World) -> None:
    world.host.kill("gateway")
    await asyncio.sleep(0.05)
    assert "gateway" in world.host.processes


@pytest.mark.parametrize(
    ("crashes", "left", "hosts", "watches"),
    sampled(
        [
            (2, [], (1, 0), True),
            (3, ["plugins"], (0, 1), True),
            (4, ["plugins", "engine"], (0, 0), True),
            (5, ["plugins", "engine", "optional watchers"], (0, 0), False),
            (7, ["plugins", "engine", "optional watchers"], (0, 0), False),
        ],
        2,
    ),
)
def test_the_more_crashes_the_more_is_left_out_and_survival_goes_on(
    crashes: int, left: list[str], hosts: tuple[int, int], watches: bool
) -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await crashed(world, crashes, setup)
        safe = state(world)["safe_mode"]
        assert (list(safe["left_out"]) if safe else []) == left
        assert setup.alive == hosts
        assert bool(setup.optional.looks) == watches
        assert setup.needed.looks
        await gateway_is_back(world)
        entered = world.events("safe-mode-entered")
        assert [json.loads(one.data)["crashes"] for one in entered] == list(range(3, crashes + 1))
        notices = world.events("effect", subject="notify:safe-mode")
        assert bool(notices) == bool(left)

    setup.tell(story)


def test_what_is_not_there_is_no_step() -> None:
    setup = Setup(plugins=False)

    async def story(world: World) -> None:
        await crashed(world, 3, setup)
        assert list(state(world)["safe_mode"]["left_out"]) == ["engine"]
        assert state(world)["engine"]["left_out"]

    setup.tell(story)
    alone = Setup()

    async def without_an_engine(world: World) -> None:
        await crashed(world, 3, alone)
        assert list(state(world)["safe_mode"]["left_out"]) == ["optional watchers"]

    alone.tell(without_an_engine, enabled=False)


def test_it_needs_no_checkpoint() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await crashed(world, 3, setup)
        await world.crash()
        await world.checkpoints.save({})
        await started(world)
        assert list(state(world)["safe_mode"]["left_out"]) == ["plugins", "engine"]

    setup.tell(story)


def test_people_are_told_that_the_daemon_died_at_most_once_an_hour_and_nothing_of_a_stop() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        def told() -> list[str]:
            events = world.events("effect", subject="notify:daemon")
            return [json.loads(one.data)["params"]["text"] for one in events]

        await started(world)
        await world.end()
        await started(world)
        await asyncio.sleep(5)
        assert told() == []
        for _ in range(2):
            await world.crash()
            await asyncio.sleep(300)
            await started(world)
            await asyncio.sleep(90)
        (text,) = told()
        assert "without a stop: it was killed, or it crashed" in text
        await asyncio.sleep(HOUR)
        assert len(told()) == 2
        world.clock.reboot()
        await world.crash()
        await asyncio.sleep(2 * HOUR)
        await started(world)
        await asyncio.sleep(5)
        assert "without a stop: the machine was restarted" in told()[2]
        assert not world.daemon.parts.view().control.safe if world.daemon else False

    setup.tell(story)


def test_stops_reboots_and_daemons_that_lived_a_minute_are_no_crashes() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        for _ in range(4):
            await started(world)
            await world.end()
        for _ in range(4):
            await started(world)
            await asyncio.sleep(61)
            await world.crash()
        assert len(world.events("daemon-healthy")) == 4
        for _ in range(4):
            world.clock.reboot()
            await started(world)
            await world.crash()
        world.clock.reboot()
        await started(world)
        assert state(world)["safe_mode"] is None

    setup.tell(story)


@pytest.mark.parametrize("crashes", sampled([3, 4, 5], 2))
def test_after_a_healthy_hour_everything_is_run_again_without_a_restart(crashes: int) -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await crashed(world, crashes, setup)
        await asyncio.sleep(HOUR - 30)
        assert state(world)["safe_mode"] is not None
        await asyncio.sleep(60)
        assert state(world)["safe_mode"] is None
        assert setup.alive == (1, 0)
        assert setup.optional.looks
        (left,) = world.events("safe-mode-left")
        assert left.actor == "pulse" or not left.actor
        over = [json.loads(one.data)["params"] for one in world.events("effect", subject="notify:safe-mode")]
        assert [bool(one.get("over")) for one in over] == [*[False] * (crashes - 2), True]
        await world.crash()
        await started(world)
        assert state(world)["safe_mode"] is None

    setup.tell(story)


def test_a_person_leaves_it_and_a_plain_restart_does_not() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await crashed(world, 4, setup)
        await world.end()
        await started(world)
        assert list(state(world)["safe_mode"]["left_out"]) == ["plugins", "engine"]
        await world.end()
        await world.log.append(Draft(SafeModeLeft(why="a person wants it"), actor="person"))
        await started(world)
        assert state(world)["safe_mode"] is None
        assert setup.alive == (1, 0)

    setup.tell(story)


@pytest.mark.parametrize("crashes", [3, 5])
def test_a_rollback_leaves_it_and_never_loads_what_crashed(crashes: int) -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(61)
        await world.end()
        await crashed(world, crashes, setup)
        await world.crash()
        setup.hosts.started.clear()
        await world.log.append(Draft(RollbackRequested(why="it crashes"), actor="person"))
        await started(world)
        await asyncio.sleep(1)
        (rolled,) = world.events("rollback")
        assert json.loads(rolled.data)["to"] == "first"
        assert state(world)["safe_mode"] is None
        assert state(world)["engine"]["runs"] == setup.revisions.main == rolled.subject
        assert [event.subject for event in world.events("engine-loaded")][-1] == rolled.subject
        assert (len(setup.hosts.started), setup.alive) == (1, (1, 0))
        await asyncio.sleep(10)
        assert setup.optional.looks

    setup.tell(story)


def test_an_engine_that_does_harm_is_taken_back_in_safe_mode_without_being_loaded() -> None:
    setup = Setup(plugins=False)

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "bad")
        await world.crash()
        await crashed(world, 2, setup)
        assert list(state(world)["safe_mode"]["left_out"]) == ["engine"]
        setup.hosts.started.clear()
        assert world.daemon is not None
        assert world.daemon.engine_controller is not None
        await world.daemon.engine_controller.roll_back("first", "bad", "it does harm")
        await asyncio.sleep(1)
        assert not setup.hosts.started
        assert list(state(world)["safe_mode"]["left_out"]) == ["engine"]
        assert setup.revisions.main == state(world)["engine"]["commit"] == world.events("rollback")[0].subject

    setup.tell(story)


def test_what_nobody_looks_at_any_more_is_told_as_not_watched() -> None:
    setup = Setup()
    names = [NETWORK, "llm:http://127.0.0.1:4000", "check:page"]
    setup.optional.conditions = (NETWORK, "llm:", "check:")

    async def story(world: World) -> None:
        await started(world)
        raised = ConditionRaised(evidence="nothing answers", state="down")
        await world.log.append(*(Draft(raised, name) for name in [*names, "memory"]))
        await world.crash()
        await crashed(world, 4, setup)
        assert [one["name"] for one in state(world)["conditions"]] == ["memory"]
        told = after(Incidents(), world.events()).at(world.clock.now())
        ended = {one.subject: one.ended_by for one in told if one.about == "condition" and one.over}
        assert ended == dict.fromkeys(names, f"it is {NOT_WATCHED}")

    setup.tell(story)


def test_a_disabled_engine_is_not_run_by_any_daemon_until_it_is_enabled() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await started(world)
        assert setup.alive == (1, 0)
        await world.ask(EngineDisabled(why="it spins"))
        await asyncio.sleep(0.01)
        assert setup.alive == (0, 0)
        await world.crash()
        await started(world)
        assert setup.alive == (0, 0)
        assert state(world)["engine"]["disabled"]["why"] == "it spins"
        await world.ask(EngineEnabled())
        await asyncio.sleep(0.01)
        assert setup.alive == (1, 0)
        assert state(world)["engine"]["disabled"] is None

    setup.tell(story)


@pytest.mark.parametrize("asked", [PromoteRequested(previous="first"), RollbackRequested()])
def test_a_promote_or_a_rollback_enables_a_disabled_engine(asked: Any) -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await started(world)
        if isinstance(asked, RollbackRequested):
            await promoted(world, "second")
        await world.ask(EngineDisabled())
        await asyncio.sleep(0.01)
        await world.ask(asked, "second" if isinstance(asked, PromoteRequested) else "")
        await asyncio.sleep(0.01)
        report = state(world)["engine"]
        assert report["disabled"] is None
        assert report["runs"] == report["commit"] == setup.revisions.main
        assert setup.alive == (1, 0)

    setup.tell(story)


@pytest.mark.parametrize("asked", [PromoteRequested(previous="second"), RollbackRequested()])
def test_what_was_asked_for_before_the_engine_was_disabled_does_not_run_it(asked: Any) -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await world.end()
        subject = "first" if isinstance(asked, PromoteRequested) else ""
        await world.log.append(Draft(asked, subject), Draft(EngineDisabled()))
        await started(world)
        assert setup.alive == (0, 0)
        assert state(world)["engine"]["disabled"]
        assert state(world)["engine"]["requests"] == 0
        refused = [json.loads(event.data)["why"] for event in world.events("promote-refused")]
        words = "pulse disabled the engine after this was asked for; promote again to run it"
        assert refused == ([words] if isinstance(asked, PromoteRequested) else [])

    setup.tell(story)


def test_a_promote_that_cannot_be_loaded_changes_nothing_of_a_disabled_engine() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await started(world)
        await world.ask(EngineDisabled())
        await world.ask(PromoteRequested(previous="first"), "broken")
        await asyncio.sleep(0.01)
        assert state(world)["engine"]["disabled"]
        assert setup.alive == (0, 0)

    setup.tell(story)


def test_a_promote_before_any_commit_was_in_force_is_taken_and_can_be_taken_back() -> None:
    setup = Setup()

    async def story(world: World) -> None:
        await world.log.append(Draft(EngineDisabled(), actor="person"))
        await started(world)
        await asyncio.sleep(1)
        await world.ask(PromoteRequested(previous="first"), "second")
        await asyncio.sleep(1)
        assert not world.events("promote-refused")
        report = state(world)["engine"]
        assert report["runs"] == report["commit"] == setup.revisions.main == "second"
        await world.ask(RollbackRequested(), "")
        await asyncio.sleep(1)
        assert json.loads(world.events("rollback")[0].data)["to"] == "first"

    setup.tell(story)


def test_an_engine_that_loads_only_without_plugins_runs_without_them_which_is_said() -> None:
    setup = Setup()
    setup.hosts.revisions = MemoryRevisions(dict.fromkeys(setup.revisions.engines), "first")

    async def story(world: World) -> None:
        await started(world)
        assert (setup.alive, state(world)["engine"]["runs"]) == ((0, 1), "first")
        assert "first can't be loaded" in state(world)["engine"]["without_plugins"]
        (error,) = world.events("error", subject="plugins")
        assert "no revision can be loaded with them, so it runs without: " in error.data
        assert (await promoted(world, "second")).kind == "promote"
        setup.hosts.revisions = setup.revisions  # the plugin is mended
        setup.bare_hosts.started[-1].alive = False
        await asyncio.sleep(20)
        assert (setup.alive, state(world)["engine"]["runs"]) == ((1, 0), "second")
        assert state(world)["engine"]["without_plugins"] is None

    setup.tell(story)
