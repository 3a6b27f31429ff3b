"""Every setting of the loops makes a difference; the others are tested where they are read."""

import asyncio
from typing import Any

from pulse_core.model.kinds import Effect
from pulse_core.settings.settings import DaemonSettings
from tests.simulation.world import World, simulate

SELDOM = {"daemon": {"tick_ms": 60_000}}
"""For hours in which only what is kept counts."""

GATEWAY = {"name": "gateway", "start": ["gateway"]}


def measured(settings: dict[str, Any], story: Any) -> Any:
    seen: list[Any] = []

    async def telling(world: World) -> None:
        seen.append(await story(world))

    simulate(telling, settings)
    return seen[0]


def test_min_tick_ms_keeps_unhurried_ticks_apart() -> None:
    async def ticks_in_a_storm(world: World) -> int:
        daemon = await world.start()
        await asyncio.sleep(10)
        before = daemon.ticker.number
        for number in range(100):
            await world.ask(Effect(action="note", key=f"k{number}"))
            await asyncio.sleep(0.01)
        return daemon.ticker.number - before

    seldom = measured({"daemon": {"min_tick_ms": 500}}, ticks_in_a_storm)
    often = measured({"daemon": {"min_tick_ms": 10}}, ticks_in_a_storm)
    assert seldom <= 3 < 50 <= often


def test_executor_scan_interval_ms_sets_how_often_the_safety_net_looks() -> None:
    async def looks(world: World) -> int:
        daemon = await world.start()
        await asyncio.sleep(60)
        return daemon.executor.beats

    usual = DaemonSettings().executor_scan_interval_ms
    assert 55 <= measured({"daemon": {"executor_scan_interval_ms": usual}}, looks) <= 70
    assert 5 <= measured({"daemon": {"executor_scan_interval_ms": 10_000}}, looks) <= 10


def test_checkpoint_every_sets_how_old_a_checkpoint_may_be() -> None:
    async def checkpointed(world: World) -> bool:
        await world.start()
        await asyncio.sleep(30)
        kept = bool(await world.checkpoints.load())
        await world.crash()
        return kept

    assert measured({"daemon": {"checkpoint_every": "10s"}}, checkpointed)
    assert not measured({"daemon": {"checkpoint_every": "10m"}}, checkpointed)


def test_process_interval_sets_how_often_processes_are_looked_at() -> None:
    async def samples(world: World) -> int:
        await world.start()
        await asyncio.sleep(100)
        return len([sample for sample in await world.vitals.recent(0) if sample.key == "process-alive"])

    assert 20 <= measured({"process": [GATEWAY]}, samples) <= 25
    assert measured({"process": [GATEWAY], "watch": {"process_interval": "20s"}}, samples) <= 9


def test_keep_sets_how_old_samples_may_become() -> None:
    async def oldest_hours(world: World) -> float:
        await world.start()
        await asyncio.sleep(5 * 3_600)
        first = (await world.vitals.recent(0))[0]
        return (world.clock.now().at - first.moment.at) / 3_600_000_000

    watch = {"process_interval": "1m", "keep": "2h"}
    assert 2 <= measured({**SELDOM, "watch": watch}, oldest_hours) <= 3.1
    assert measured({**SELDOM, "watch": {"process_interval": "1m"}}, oldest_hours) > 4.9


def test_keep_minutes_sets_how_old_minutes_may_become() -> None:
    async def oldest_hours(world: World) -> float:
        await world.start()
        await asyncio.sleep(9 * 3_600)
        oldest = min(at for key, at in world.vitals.kept_minutes if key == "process-alive")
        return (world.clock.now().at - oldest) / 3_600_000_000

    watch = {"process_interval": "1m", "keep": "2h"}
    guarding = {**SELDOM, "process": [GATEWAY]}
    assert 5 <= measured({**guarding, "watch": {**watch, "keep_minutes": "5h"}}, oldest_hours) <= 6.1
    assert measured({**guarding, "watch": watch}, oldest_hours) > 8.9


def test_intent_expires_sets_how_long_a_stop_by_systemd_is_respected() -> None:
    async def restarts(world: World) -> int:
        await world.start()
        await asyncio.sleep(300)
        world.host.intended.add("gateway")
        world.host.kill("gateway")
        await asyncio.sleep(3_600)
        return len(world.host.starts)

    assert measured({"process": [GATEWAY]}, restarts) == 1
    assert measured({"process": [GATEWAY], "intent": {"expires": "10m"}}, restarts) == 2


def test_evidence_sets_how_many_probes_must_fail() -> None:
    async def seconds_until_restart(world: World) -> float:
        await world.start()
        await asyncio.sleep(300)
        began = asyncio.get_running_loop().time()
        world.host.processes["gateway"].answering = False
        while len(world.host.starts) == 1:
            await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time() - began

    port = {**GATEWAY, "tcp": "127.0.0.1:1"}
    patient = measured({"process": [{**port, "evidence": 20}]}, seconds_until_restart)
    assert patient > measured({"process": [port]}, seconds_until_restart) + 5


def test_grace_sets_how_long_a_start_may_take() -> None:
    async def seconds_between_tries(world: World) -> float:
        world.host.unresponsive.add("gateway")
        await world.start()
        async with asyncio.timeout(120):
            while len(tries := world.events("effect", subject="restart-process:gateway")) < 2:
                await asyncio.sleep(0.1)
        return (tries[1].mono - tries[0].mono) / 1e6

    port = {**GATEWAY, "tcp": "127.0.0.1:1"}
    assert measured({"process": [port]}, seconds_between_tries) >= 10
    assert measured({"process": [{**port, "restart": {"grace": "2s"}}]}, seconds_between_tries) < 4
