"""A daemon that is killed at any step of a promote or a rollback: what is in force is before or after, never between."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from pulse_core.composition import FOLD
from pulse_core.engine.engine_controller import CRASHED, NO_HOST
from pulse_core.model.event import Event
from pulse_core.model.kinds import PromoteRequested, RollbackRequested, SafeModeLeft
from pulse_core.model.names import SETTLING
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule
from tests.long_form import sample, sampled
from tests.simulation.mortal import Fate, Lives
from tests.simulation.world import World, simulate

SETTINGS: dict[str, Any] = {
    "daemon": {"tick_ms": 1_000},
    "rollback": {"errors": 3},
    "process": [{"name": "gateway", "start": ["gateway"]}],
}
REST = 90.0
EVERY, SEEDS = sample(32, 1), sample(6, 1_000)
Deed = Callable[[], Awaitable[None]]


async def spares(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


async def raises(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    raise RuntimeError("always")


ENGINES: Mapping[str, Sequence[Rule] | None] = {
    "first": (spares,),
    "second": (spares,),
    "bad": (raises,),
    "broken": None,
}
STORIES: Mapping[str, Sequence[str]] = {
    "a promote": ("second",),
    "a promote that is refused": ("broken",),
    "a rollback": ("second", "back"),
    "a promote that is taken back by itself": ("second", "bad"),
}
"""What people ask for, one thing after the other: a commit to be promoted, or to go back."""


def lived(words: Sequence[str], last: Sequence[int] = (), rest: float = REST) -> tuple[World, Lives]:
    """A world whose daemons were killed at these steps of their lives while people asked for this."""
    lives = Lives(ENGINES, Fate())

    async def story(world: World) -> None:
        await lives.live(world, [asked(world, word) for word in words], last, rest)
        await leave_safe_mode(world)
        obeys(world, lives)

    return simulate(story, SETTINGS, engine=lives.parts), lives


async def leave_safe_mode(world: World) -> None:
    """Have the engine run again if so many lives ended early that the last one left it out."""
    assert world.daemon is not None
    if world.daemon.parts.view().control.left_out:
        assert (world.daemon.report()["engine"] or NO_HOST)["runs"] is None
        await world.ask(SafeModeLeft(why="a person wants it"))
        await asyncio.sleep(REST)


def asked(world: World, word: str) -> Deed:
    async def deed() -> None:
        assert world.daemon is not None
        in_force = world.daemon.parts.view().engine.commit
        if word == "back":
            await world.ask(RollbackRequested(why="a person wants it"), "")
        else:
            await world.ask(PromoteRequested(previous=in_force), word)

    return deed


def obeys(world: World, lives: Lives) -> None:
    """The laws: each request has one answer, and the log, `main` and the host agree on what is in force."""
    assert world.daemon is not None
    engine = FOLD(FOLD.start, world.log.events).engine
    answers = Counter(event.cause for event in world.events("promote", "rollback", "promote-refused"))
    for request in world.events("promote-requested", "rollback-requested"):
        assert answers[request.id] == 1, f"{answers[request.id]} answers to {request}"
    assert not engine.requests
    report: Any = world.daemon.report()["engine"]
    assert lives.revisions.main == engine.commit == report["runs"]
    assert not report["degraded"]
    in_force = [host for host in lives.hosts.started if host.alive]
    assert len(in_force) == 1
    for event in world.events("rollback"):
        said = json.loads(event.data)
        assert lives.revisions.branches[said["kept_as"]] == said["rejected"]
        assert lives.revisions.engines[event.subject] == lives.revisions.engines[said["to"]]
    for effect in world.events("effect", subject="rollback-engine"):
        assert len([one for one in world.events(*SETTLING) if one.subject == effect.id]) == 1
    assert "gateway" in world.host.processes
    obeys_people(world)


def obeys_people(world: World) -> None:
    """What was asked for is done once, and what does harm is taken back once."""
    harmful = world.events("promote", subject="bad")
    asked_for = [event.id for event in world.events("rollback-requested")]
    refused = [event for event in world.events("promote-refused") if event.cause in asked_for]
    assert len(world.events("rollback")) == len(harmful) + len(asked_for) - len(refused)
    crashed = [event for event in refused if json.loads(event.data)["why"] == CRASHED]
    assert len(refused) == len(crashed) or not world.events("promote", subject="second")


def turns(world: World) -> list[Event]:
    return world.events("promote", "rollback")


@pytest.mark.parametrize("words", sampled(STORIES.values(), 2), ids=sampled(STORIES, 2))
def test_killed_at_any_step_it_is_done_or_refused_or_never_was(words: Sequence[str]) -> None:
    _, unharmed = lived(words)
    offset = sum(map(ord, "".join(words))) % EVERY
    for step in range(offset, min(unharmed.steps, 150), EVERY):
        _, lives = lived(words, [step])
        assert lives.revisions.engines[lives.revisions.main] == (spares,), f"killed at step {step}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_again_and_again_it_comes_to_the_same_end(seed: int) -> None:
    dice = Random(seed)
    words = dice.choice(list(STORIES.values()))
    last = [min(int(dice.expovariate(1 / 15)), 60) for _ in range(dice.randint(2, 6))]
    _, lives = lived(words, last)
    assert lives.revisions.engines[lives.revisions.main] == (spares,), f"killed at {last}"


def test_the_same_kills_lead_to_the_same_life() -> None:
    one, other = (lived(STORIES["a rollback"], [7, 12, 3])[0] for _ in range(2))
    assert one.log.events == other.log.events
    assert len(turns(one)) >= 2


def test_unharmed_each_story_has_steps_worth_killing_at() -> None:
    for words in STORIES.values():
        assert lived(words)[1].steps > 25
