"""Rules of capabilities: in the daemon itself, inside of survival and outside of all others, in the whole fold alone."""

import asyncio
import json
from collections.abc import Collection, Sequence

from pulse_core.model.kinds import Effect, Paused
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import FoldResult
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule
from pulse_core.testing import given
from pulse_core.tick import RuleFolds
from tests.simulation.world import World, simulate

GATEWAY = {"process": [{"name": "gateway", "start": ["gateway"]}]}


def wishing(key: str, survival: bool = False) -> Rule:
    async def wishes(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(Effect(action="note", key=key, survival=survival))

    return wishes


async def failing(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    raise ValueError("no such luck")


def test_without_an_engine_they_are_folded_all_the_same() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        wish = json.loads(world.events("effect", subject="mine")[0].data)
        assert (wish["rule"], wish.get("survival", False)) == ("wishes", False)

    simulate(story, {}, rules=(wishing("mine", survival=True),))


def test_where_there_are_none_and_no_engine_there_is_no_whole_fold() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(60)
        assert daemon.ticker.last_whole is None

    simulate(story, {}, rules=())


async def test_they_stand_inside_of_survival_and_outside_of_the_others() -> None:
    async def engine(prev: Snapshot, curr: Snapshot) -> FoldResult:
        return FoldResult(layers=(LayerOutcome("engine", "passed"),))

    async def nobody(effects: Sequence[Effect]) -> Collection[str]:
        return ()

    async def survival(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return await inner(prev, curr)

    async def mine(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return await inner(prev, curr)

    curr = given().snapshot
    folded = await RuleFolds((survival,), engine, nobody, (mine,)).whole(curr, curr)
    assert [layer.rule for layer in folded.layers] == ["engine", "mine", "survival"]


def test_a_pause_holds_for_them() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        before = len(world.events("effect"))
        await asyncio.sleep(60)
        assert len(world.events("effect")) == before

    async def later(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        wish = Effect(action="note", key=f"tick-{curr.tick}")
        verdict = await inner(prev, curr)
        return verdict.plus(wish) if curr.control.paused else verdict

    simulate(story, {}, rules=(later,))


def test_where_they_are_alone_they_are_asked_when_something_has_changed_or_their_time_has_come() -> None:
    asked: list[int] = []

    async def alarm(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        asked.append(curr.now.mono // 1_000_000)
        return (await inner(prev, curr)).within(7_000)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(30)
        since = asked[0]
        assert [second - since for second in asked[1:]] == [7, 14, 21, 28]
        await world.ask(Paused())
        await asyncio.sleep(0.1)
        assert asked[-1] - since == 30

    simulate(story, {"daemon": {"tick_ms": 2_000}}, rules=(alarm,))


def test_one_whose_wish_was_held_back_is_asked_again_at_the_next_tick() -> None:
    async def both(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        left = [key for key in ("a", "b") if key not in curr.effects.settled_at]
        return (await inner(prev, curr)).plus(*(Effect(action="note", key=key) for key in left))

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(50)
        assert len(world.events("effect", subject="a")) == 1
        assert not world.events("effect", subject="b")
        assert len(world.events("effect", subject="notify:blast-radius:capabilities")) == 1
        await asyncio.sleep(30)
        assert len(world.events("effect", subject="b")) == 1

    settings = {"budget": {"capability_actions_per_minute": 1}, "notify": {"remind": "0s"}}
    simulate(story, settings, rules=(both,))


def test_one_that_raises_is_skipped_and_reported_and_the_others_go_on() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert world.events("effect", subject="good")
        said = [(event.subject, event.data) for event in world.events("error")]
        assert said
        assert said[0][0] == "rule:failing"
        assert "no such luck" in said[0][1]

    simulate(story, {}, rules=(failing, wishing("good")))


def test_one_that_hangs_does_not_delay_the_reflex() -> None:
    async def hanging(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await asyncio.sleep(5)
        return await inner(prev, curr)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(0.5)
        world.host.kill("gateway")
        await asyncio.sleep(0.5)
        assert len(world.host.starts) == 2

    simulate(story, GATEWAY, rules=(hanging,))
