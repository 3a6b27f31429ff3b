"""Probes of guarded processes as the whole daemon lives them, in virtual time."""

import asyncio
import json
import re
from typing import Any

from pulse_core.model.home_status import GuardedProcessStatus
from pulse_core.ports.health import HealthAnswer
from tests.simulation.world import World, simulate
from upulse_cli.views.narrator import restarted_process

HTTP = {"name": "gateway", "start": ["gateway"], "http": "http://127.0.0.1:1/", "every": "1s"}
WELL, SICK = HealthAnswer(True, "it answers 200"), HealthAnswer(False, "it answered 503")


def one(**more: Any) -> dict[str, Any]:
    return {"process": [{**HTTP, **more}]}


def starts(world: World) -> int:
    return len(world.host.starts)


def evidence(world: World) -> str:
    """What the last death stands on."""
    return str(json.loads(world.events("process-died")[-1].data)["evidence"])


def told(world: World) -> GuardedProcessStatus:
    assert world.daemon is not None
    return world.daemon.report()["processes"][0]


async def answers(world: World, *said: HealthAnswer) -> None:
    """Give these answers, one to each probe."""
    for answer in said:
        world.host.says["gateway"], asked = answer, len(world.host.asked)
        world.host.processes["gateway"].answering = bool(answer.ok)
        while len(world.host.asked) == asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)  # it is answered


def test_what_answers_no_probe_any_more_is_restarted_after_the_evidence_and_not_before() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        await answers(world, SICK, SICK)
        assert starts(world) == 1
        await answers(world, SICK)
        world.host.says.clear()
        await asyncio.sleep(2)
        assert starts(world) == 2
        assert evidence(world) == "it answered 503; 3 probes in a row failed"
        assert told(world)["state"] == "up"

    simulate(story, one())


def test_evidence_may_be_some_of_many_probes() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        await answers(world, SICK, WELL, SICK, WELL, WELL, SICK, WELL, SICK)
        assert starts(world) == 1
        await answers(world, SICK)
        world.host.says.clear()
        await asyncio.sleep(2)
        assert starts(world) == 2
        assert evidence(world) == "it answered 503; 3 of the last 5 probes failed"

    simulate(story, one(evidence=3, evidence_of=5))


def test_a_start_is_over_when_it_answers() -> None:
    async def story(world: World) -> None:
        world.host.unresponsive.add("gateway")
        await world.start()
        await asyncio.sleep(5)
        assert told(world)["state"] == "starting"
        world.host.processes["gateway"].answering = True
        await asyncio.sleep(1)
        assert told(world)["state"] == "up"
        assert len(world.events("process-up")) == 1

    simulate(story, one())


def test_who_was_restarted_by_somebody_else_is_up_when_it_answers() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        world.host.says["gateway"] = SICK
        world.host.start("gateway")
        await asyncio.sleep(3)
        assert told(world)["state"] == "starting"
        assert (len(world.events("process-died")), len(world.events("process-up"))) == (2, 1)
        world.host.says.clear()
        await asyncio.sleep(2)
        assert told(world)["state"] == "up"
        assert (len(world.events("process-died")), len(world.events("process-up"))) == (2, 2)
        assert starts(world) == 2

    simulate(story, one())


def test_in_the_start_period_nothing_follows_from_a_probe() -> None:
    async def story(world: World) -> None:
        world.host.unresponsive.add("gateway")
        await world.start()
        await asyncio.sleep(40)  # longer than its grace
        assert (starts(world), told(world)["state"]) == (1, "starting")
        world.host.processes["gateway"].answering = True
        await asyncio.sleep(5)
        assert told(world)["state"] == "up"
        world.host.processes["gateway"].answering = False
        await asyncio.sleep(10)
        assert (starts(world), told(world)["state"]) == (1, "up")
        await asyncio.sleep(15)
        assert starts(world) == 2

    simulate(story, one(start_period="1m"))


def test_what_never_answers_is_tried_again_after_its_start_period() -> None:
    async def story(world: World) -> None:
        world.host.unresponsive.add("gateway")
        await world.start()
        await asyncio.sleep(58)
        assert starts(world) == 1
        await asyncio.sleep(5)
        assert starts(world) == 2
        world.host.kill("gateway")
        await asyncio.sleep(60)
        wishes = [restarted_process(event.spelled()) for event in world.events("effect")]
        assert wishes[:3] == [("gateway", False), ("gateway", True), ("gateway", False)]

    simulate(story, one(start_period="1m"))


def test_a_streak_survives_a_restart_of_pulse() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        await answers(world, SICK, SICK)
        await world.crash()
        await asyncio.sleep(10)
        await world.start()
        assert starts(world) == 1
        await answers(world, SICK)
        world.host.says.clear()
        await asyncio.sleep(2)
        assert starts(world) == 2
        assert evidence(world) == "it answered 503; 3 probes in a row failed"

    simulate(story, one())


def test_a_streak_of_another_life_is_forgotten() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        await answers(world, SICK, SICK)
        await world.crash()
        world.host.says.clear()
        world.host.kill("gateway")
        await world.start()
        await asyncio.sleep(5)
        assert starts(world) == 2
        await answers(world, SICK, SICK, WELL)
        await asyncio.sleep(5)
        assert starts(world) == 2

    simulate(story, one())


def test_a_probe_that_cannot_be_made_says_nothing() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        world.host.says["gateway"] = HealthAnswer(None, "it could not be asked: no memory")
        await asyncio.sleep(100)
        assert (starts(world), told(world)["state"]) == (1, "up")
        assert told(world)["why"].endswith("; it could not be asked: no memory")

    simulate(story, one())


def test_a_start_that_cannot_be_asked_is_up_within_its_grace_as_long_as_it_lives() -> None:
    async def story(world: World) -> None:
        world.host.says["gateway"] = HealthAnswer(None, "it could not be asked: no such file")
        await world.start()
        await asyncio.sleep(3)
        assert told(world)["state"] == "starting"
        await asyncio.sleep(4)
        assert told(world)["state"] == "up"
        await asyncio.sleep(300)
        assert (starts(world), told(world)["state"]) == (1, "up")
        assert told(world)["why"].endswith("; it could not be asked: no such file")

    simulate(story, one())


def test_a_start_whose_probes_fail_is_told_with_what_they_say_and_who_lives() -> None:
    async def story(world: World) -> None:
        world.host.unresponsive.add("gateway")
        await world.start()
        await asyncio.sleep(20.5)
        assert (starts(world), told(world)["state"]) == (2, "flapping")
        words = r"dead after 1 restart: its probe failed \d+ times since its start: it does not answer; next try in .*"
        assert re.fullmatch(words, told(world)["why"])
        assert told(world)["pid"] == world.host.processes["gateway"].found.pid
        world.host.says["gateway"] = HealthAnswer(None, "it could not be asked: no memory")
        await asyncio.sleep(20)
        assert told(world)["state"] == "flapping"  # it was called sick last, and by nobody well since

    simulate(story, one(restart={"max": 1, "backoff": "0s", "grace": "3s"}))


def test_nobody_waits_for_a_probe_and_one_process_is_asked_once_at_a_time() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        world.host.silent.add("gateway")
        await asyncio.sleep(60)
        asked = world.host.asked.count("gateway")
        await asyncio.sleep(60)
        assert world.host.asked.count("gateway") == asked
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert starts(world) == 2

    simulate(story, one())


def test_every_sets_how_often_it_is_asked() -> None:
    async def asked(world: World) -> None:
        await world.start()
        await asyncio.sleep(100)
        seen.append(len(world.host.asked))

    seen: list[int] = []
    for every in ("1s", "10s", "0s"):
        simulate(asked, one(every=every))
    often, seldom, usual = seen
    assert 95 <= often <= 105
    assert 9 <= seldom <= 13
    assert 18 <= usual <= 24


def test_a_failing_probe_is_told_before_anything_follows() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        await answers(world, SICK, WELL, SICK)
        await asyncio.sleep(0.5)
        assert told(world)["state"] == "up"
        assert told(world)["why"] == "2 of the last 4 probes failed, the last one: it answered 503"

    simulate(story, one(evidence=3, evidence_of=4))


def test_who_holds_the_port_of_what_dies_again_and_again_is_told() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        held = "127.0.0.1:1 is held by process 7 (nginx)"
        world.host.says["gateway"] = HealthAnswer(None, held, held)
        await world.start()
        await asyncio.sleep(60)
        assert told(world)["state"] == "flapping"
        assert held in told(world)["why"]
        deaths = [json.loads(event.data)["evidence"] for event in world.events("process-died")]
        was_held = held.replace("is held", "was held")
        assert all(death.endswith(f"; {was_held}") for death in deaths[3:])
        wishes = [json.loads(event.data) for event in world.events("effect")]
        restarts = [one["reason"] for one in wishes if one["action"] == "restart-process"]
        assert all(held in reason for reason in restarts[3:])
        (notice,) = [one for one in wishes if one["key"] == "notify:flapping:gateway"]
        assert held in notice["params"]["text"]
        world.host.dying.clear()
        world.host.says.clear()
        await asyncio.sleep(400)
        assert (told(world)["state"], told(world)["why"]) == ("up", "it answers")
        await answers(world, SICK, SICK, SICK)
        assert was_held not in json.loads(world.events("process-died")[-1].data)["evidence"]

    simulate(story, one())


def test_who_holds_the_port_is_told_of_each_life_that_ends_before_it_could_be_asked() -> None:
    async def story(world: World) -> None:
        held = "127.0.0.1:1 is held by process 7 (nginx), not by 8"
        world.host.says["gateway"] = HealthAnswer(False, held, held)
        await world.start()
        await asyncio.sleep(1)
        world.host.silent.add("gateway")
        while told(world)["state"] != "flapping":
            if "gateway" in world.host.processes:
                await asyncio.sleep(0.3)
                world.host.kill("gateway")
            await asyncio.sleep(0.1)
        deaths = [json.loads(event.data)["evidence"] for event in world.events("process-died")]
        assert all("127.0.0.1:1 was held by process 7 (nginx)" in death for death in deaths[1:])
        wishes = [json.loads(event.data) for event in world.events("effect")]
        (notice,) = [one for one in wishes if one["key"] == "notify:flapping:gateway"]
        assert "127.0.0.1:1 was held by process 7 (nginx)" in notice["params"]["text"]

    simulate(story, one())


def test_however_many_hang_and_take_long_to_end_and_spend_the_budget_who_is_dead_is_started_at_once() -> None:
    names = [f"it{number}" for number in range(6)]

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200.5)
        for name in names:
            world.host.says[name], world.host.stubborn[name] = SICK, 50.0
            world.host.processes[name].answering = False
        await asyncio.sleep(10)
        assert world.daemon is not None
        assert len(world.daemon.executor.workers.running) == len(names)
        before = starts(world)
        world.host.kill("other")
        await asyncio.sleep(1)
        assert world.host.starts[before:][0][0] == "other"
        world.host.says.clear()
        await asyncio.sleep(70)
        assert {name for name, _ in world.host.starts[before:]} == {"other", *names}

    processes = [{**HTTP, "name": name, "start": [name]} for name in names]
    other = {"name": "other", "start": ["other"]}
    bounds = {"daemon": {"concurrency": 2}, "budget": {"actions_per_minute": len(names)}}
    simulate(story, {**bounds, "process": [*processes, other]})
