"""Ticks: when they come, what they see, what is kept of them."""

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pulse_core.app.status import is_wrong
from pulse_core.composition import SURVIVAL
from pulse_core.model.kinds import Effect, ErrorReported, Paused, Resumed
from pulse_core.model.payload import Payload, encode
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule
from pulse_core.rules.onion import rule_name
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.tick import ticker
from tests.simulation.world import World, simulate

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}
AT_ONCE = {"backoff": "0s", "healthy_after": "0s", "grace": "0s"}
BOTH = {"process": [{"name": name, "start": [name], "restart": AT_ONCE} for name in ("gateway", "worker")]}


def wishing(key: str, **more: Any) -> Rule:
    async def rule(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(Effect(action="note", key=key, **more))

    rule.__name__ = f"wishes_{key}"
    return rule


def seeing(seen: list[tuple[Snapshot, Snapshot]]) -> Rule:
    async def rule(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        seen.append((prev, curr))
        return await inner(prev, curr)

    return rule


def test_a_quiet_machine_is_looked_at_every_tick_ms() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(10)
        before = daemon.ticker.number
        await asyncio.sleep(100)
        assert daemon.ticker.number - before == 10

    simulate(story, {"daemon": {"tick_ms": 10_000}})


def test_a_rule_may_ask_for_an_earlier_tick() -> None:
    async def hurried(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).within(1_000)

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(1)
        before = daemon.ticker.number
        await asyncio.sleep(100)
        assert daemon.ticker.number - before == 100

    simulate(story, {}, rules=(hurried,))


def test_an_append_wakes_the_tick() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(100)
        before = daemon.ticker.number
        await world.ask(Paused())
        await asyncio.sleep(0.01)
        assert daemon.ticker.number == before + 1
        assert (await world.vitals.ticks(1))[0].woken_by == "paused"

    simulate(story, {})


@pytest.mark.parametrize("asked", [lambda n: Effect(action="note", key=f"k{n}"), lambda n: Resumed()])
def test_a_storm_of_events_is_not_a_storm_of_ticks(asked: Callable[[int], Payload]) -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(100)
        before = daemon.ticker.number
        for number in range(500):
            await world.ask(asked(number))
            await asyncio.sleep(0.002)
        assert daemon.ticker.number - before <= 50

    simulate(story, {})


def test_the_previous_snapshot_is_the_one_of_the_last_tick_even_across_restarts() -> None:
    seen: list[tuple[Snapshot, Snapshot]] = []

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(200)
        last, count = daemon.ticker.prev, len(seen)
        assert last is not None
        await world.crash()
        world.host.kill("gateway")
        await asyncio.sleep(100)
        await world.start()
        await asyncio.sleep(1)
        first = seen[count][0]
        assert (first.tick, first.now, first.state) == (last.tick, last.now, last.state)
        assert first.process("gateway").up is not None

    simulate(story, ONE, rules=(seeing(seen),))


def test_without_vitals_the_first_tick_compares_with_itself() -> None:
    seen: list[tuple[Snapshot, Snapshot]] = []

    async def story(world: World) -> None:
        await world.start()
        assert seen[0][0] is seen[0][1]

    simulate(story, {}, rules=(seeing(seen),))


def test_an_effect_that_is_open_is_not_emitted_again() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        await asyncio.sleep(100)
        assert len(world.events("effect")) <= 1

    simulate(story, {}, rules=(wishing("once"),))


def test_one_effect_wished_by_both_folds_is_recorded_once() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert len(world.events("effect", subject="restart-process:gateway")) == 1

    simulate(story, ONE, rules=(wishing("other"),))


def test_a_rule_from_outside_cannot_pass_its_effects_off_as_survival() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        wish = json.loads(world.events("effect", subject="sly")[0].data)
        assert (wish["rule"], wish.get("survival", False)) == ("wishes_sly", False)

    simulate(story, {}, rules=(wishing("sly", survival=True, rule="process_watchdog"),))


def test_survival_wishes_are_not_repeated_by_a_whole_fold_that_comes_late() -> None:
    async def slow(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await asyncio.sleep(3)
        return (await inner(prev, curr)).plus(Effect(action="note", key="late"))

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(20)
        assert len(world.host.starts) == 1
        assert world.events("effect", subject="late")

    simulate(story, ONE, rules=(slow,))


def test_a_late_fold_sees_every_change_between_two_of_its_snapshots() -> None:
    seen: list[tuple[Snapshot, Snapshot]] = []

    async def slow(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        seen.append((prev, curr))
        await asyncio.sleep(3)
        return await inner(prev, curr)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60)
        assert all(later[0] is earlier[1] for earlier, later in pairwise(seen))

    simulate(story, ONE, rules=(slow,))


def test_rules_inside_that_hang_do_not_delay_the_reflex() -> None:
    async def hanging(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await asyncio.sleep(5)
        return await inner(prev, curr)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(0.05)
        assert "gateway" in world.host.processes

    simulate(story, ONE, rules=(hanging,))


def test_a_rule_that_raises_is_reported_and_the_others_go_on() -> None:
    faults = [ValueError("oh")]

    async def broken(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        for fault in faults:
            raise fault
        return await inner(prev, curr)

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(12)  # some hundred ticks
        assert [event.subject for event in world.events("error")] == ["rule:broken"]
        assert world.events("effect", subject="inner")
        told = daemon.report()
        assert (told["raising"], is_wrong({**told, "held_back": ()})) == ({"broken": "ValueError: oh"}, True)
        faults.clear()
        await asyncio.sleep(30)
        told = daemon.report()
        assert (told["raising"], is_wrong({**told, "held_back": ()})) == ({}, False)

    simulate(story, {}, rules=(broken, wishing("inner")))


@pytest.mark.parametrize(
    "wish", [{"action": "no-such-action"}, {"action": "restart-process", "params": "nonsense"}]
)
def test_an_effect_nobody_could_carry_out_is_reported_and_left_out(wish: dict[str, Any]) -> None:
    async def confused(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        effect = Effect.model_construct(key="bad", **{"params": {}, **wish})
        return (await inner(prev, curr)).plus(effect)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert not world.events("effect", subject="bad")

    simulate(story, {}, rules=(confused, wishing("good")))


def test_a_tick_record_says_what_was_seen_and_done() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        records = await world.vitals.ticks(100)
        emitting = next(record for record in records if record.effects)
        assert emitting.effects == ("restart-process:gateway",)
        assert emitting.settings == world.settings.digest
        assert [(layer.rule, layer.outcome) for layer in emitting.layers] == [
            (rule_name(rule), "added" if rule is process_watchdog else "passed")
            for rule in reversed(SURVIVAL)
        ]
        assert emitting.snapshot is not None
        kept = await world.objects.get(emitting.snapshot)
        assert kept is not None
        assert json.loads(kept)["tick"] == emitting.tick

    simulate(story, ONE)


def test_a_stop_in_the_midst_of_recording_leaves_no_effect_that_no_tick_tells_of() -> None:
    async def story(world: World) -> None:
        put = world.objects.put

        async def put_slowly(blob: bytes) -> str:
            await asyncio.sleep(0.5)
            return await put(blob)

        world.objects.put = put_slowly  # type: ignore[method-assign]  # a disk that takes its time
        await world.start()
        async with asyncio.timeout(5):
            while not world.events("effect"):
                await asyncio.sleep(0.01)
        await world.end()
        (record,) = [record for record in await world.vitals.ticks(100) if "x" in record.effects]
        assert await world.objects.get(record.snapshot or "")

    simulate(story, {}, rules=(wishing("x"),))


def test_a_death_does_not_wait_for_the_disk_that_takes_the_snapshot_of_an_earlier_tick() -> None:
    async def story(world: World) -> None:
        put, puts = world.objects.put, list[bytes]()

        async def put_slowly(blob: bytes) -> str:
            puts.append(blob)
            await asyncio.sleep(0.5)
            return await put(blob)

        world.objects.put = put_slowly  # type: ignore[method-assign]  # a disk that takes its time
        await world.start()
        await asyncio.sleep(200)
        puts.clear()
        for name in ("gateway", "worker", "gateway"):
            world.host.kill(name)
            await asyncio.sleep(0.05)
            assert world.host.starts[-1][0] == name
        assert len(puts) == 1
        await asyncio.sleep(5)
        records = [record for record in await world.vitals.ticks(100) if record.effects]
        assert len(records) == len({record.snapshot for record in records}) >= 4
        for record in records:
            kept = await world.objects.get(record.snapshot or "")
            assert kept
            assert json.loads(kept)["tick"] == record.tick

    simulate(story, BOTH)


def test_snapshots_take_so_much_of_the_disk_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "SNAPSHOT_BURST", 1)
    monkeypatch.setattr(ticker, "SNAPSHOT_BYTES_A_SECOND", 0)

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        world.host.kill("gateway")
        await asyncio.sleep(1)
        acted = [record for record in await world.vitals.ticks(100) if record.effects]
        assert [bool(record.snapshot) for record in acted] == [True, False]
        (error,) = world.events("error")
        assert "its snapshot could not be kept: many and large ones" in error.data

    simulate(story, ONE)


def test_an_effect_names_its_rule_tick_and_samples() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        world.host.kill("gateway")
        await asyncio.sleep(1)
        wish = json.loads(world.events("effect")[-1].data)
        assert (wish["rule"], wish["survival"]) == ("process_watchdog", True)
        (sample,) = await world.vitals.samples(wish["samples"])
        assert sample.data["gateway"]["up"] is False

    simulate(story, ONE)


def test_tick_numbers_go_on_when_vitals_are_deleted() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(100)
        await world.end()
        last = max(json.loads(event.data)["tick"] for event in world.events("effect"))
        world.vitals = type(world.vitals)()
        daemon = await world.start()
        assert daemon.ticker.number > last

    simulate(story, ONE)


def test_a_start_that_folds_the_log_asks_the_service_manager_for_more_time() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        await world.crash()
        await world.start()
        first, *more = (name for name in world.service_manager.told if name != "watchdog")
        assert first == "ready", "an empty log takes no time"
        assert more[-1] == "ready"
        assert set(more[:-1]) == {"extend_timeout"}

    simulate(story, {})


def test_the_watchdog_hears_of_life_only_while_the_loops_turn() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(60)
        heard = world.service_manager.told.count("watchdog")
        assert heard >= 20
        daemon.executor.beats = -(10**9)
        stuck = asyncio.Event()
        daemon.executor._round = stuck.wait  # type: ignore[method-assign]
        await asyncio.sleep(60)
        assert world.service_manager.told.count("watchdog") <= heard + 2
        stuck.set()

    async def told(world: World) -> None:
        world.service_manager._seconds = 8.0
        await story(world)

    simulate(told, {})


def test_snapshots_of_two_ticks_at_a_time_are_each_kept_or_given_up() -> None:
    async def story(world: World) -> None:
        ticker = (await world.start()).ticker
        curr = ticker._snapshot()

        async def kept(later: int) -> str:
            for _ in range(later):
                await asyncio.sleep(0)
            try:
                return await ticker._kept(curr)
            except TimeoutError:
                return ""

        names = await asyncio.gather(*map(kept, range(10)))
        assert len({*names} - {""}) == 1

    simulate(story, ONE)


def test_it_is_said_that_samples_are_lost() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.vitals.trouble = "samples can't be written, and are lost: disk I/O error"
        await asyncio.sleep(300)
        (error,) = world.events("error")
        assert (error.subject, error.data) == ("vitals", encode(ErrorReported(message=world.vitals.trouble)))

    simulate(story, {})
