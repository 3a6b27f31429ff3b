"""The disk is full: survival goes on from memory, nobody is told that anything is recorded, nothing is lost."""

import asyncio
import json
import logging
import re

import pytest

from pulse_adapters.memory.clock import START
from pulse_adapters.memory.logs import MemoryLogs
from pulse_core.app.status import is_wrong
from pulse_core.composition import FOLD
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft
from pulse_core.model.home_status import LogStatus
from pulse_core.model.kinds import ConditionRaised, Effect, Paused, Resumed
from pulse_core.model.moment import US_PER_SECOND, local_text
from pulse_core.projections.incidents import Incidents
from pulse_core.projections.incidents import after as incidents_after
from pulse_core.record.journal import PATIENCE
from tests.simulation.senses import of_logs
from tests.simulation.world import World, simulate

pytestmark = pytest.mark.usefixtures("usual_rounds")

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}


def fill_disk(world: World) -> None:
    async def full() -> None:
        raise LogUnavailable("the disk is full")

    world.log.commit = full


def free_disk(world: World) -> None:
    world.log.commit = None


def test_a_process_that_dies_on_a_full_disk_is_restarted_once() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(60)
        assert "gateway" in world.host.processes
        assert len(world.host.starts) == 2
        assert world.daemon is not None
        assert world.daemon.report()["log"]["unwritten"] > 0
        free_disk(world)
        await asyncio.sleep(2)
        assert world.daemon.report()["log"]["unwritten"] == 0

    simulate(story, ONE)


def test_what_waits_a_moment_for_its_answer_is_no_sign_that_the_log_cant_be_written() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        told: list[LogStatus] = []

        async def look() -> None:
            told.append(daemon.report()["log"])

        await daemon.journal.announce([Draft(Resumed())], look)
        assert [(log["unwritten"], log.get("held")) for log in told] == [(0, {})]

    simulate(story, ONE)


def test_that_requests_are_refused_and_samples_are_lost_is_told_at_once_and_until_a_while_after() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        assert (daemon.report()["log"]["refusing"], daemon.report()["samples_lost"]) == ("", "")
        fill_disk(world)
        world.vitals.trouble = "samples can't be written, and are lost: database or disk is full"
        with pytest.raises(LogUnavailable):
            await world.ask(Paused())
        told = daemon.report()
        assert told["log"]["unwritten"] == 0
        assert told["log"]["refusing"].startswith("since 20")
        assert told["log"]["refusing"].endswith(": the disk is full")
        assert told["samples_lost"] == world.vitals.trouble
        assert is_wrong(told)
        free_disk(world)
        await asyncio.sleep(31)
        assert daemon.report()["log"]["refusing"] == ""

    simulate(story, ONE)


def test_an_error_that_is_not_recorded_is_told_once_in_the_daemons_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        daemon.reporter("watcher:x", "it failed")
        await asyncio.sleep(10)

    simulate(story, ONE)
    told = [message for message in caplog.messages if "watcher:x" in message]
    assert len([message for message in told if "it failed" in message]) == 1
    assert told[-1].startswith("watcher:x: what was just reported of it is not recorded: ")


@pytest.mark.parametrize(
    "message", ["it failed", "x" * 3_000, "no text: \udcff"], ids=["short", "long", "odd"]
)
def test_errors_that_came_again_while_the_first_was_not_recorded_are_told_from_the_first_on(
    message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(
        logging.CRITICAL, "pulse.error"
    )  # what is captured goes to xdist, which ends at half a character

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        began = world.clock.now().at
        for _ in range(4):
            daemon.reporter("watcher:x", message)
            await asyncio.sleep(10)
        free_disk(world)
        await asyncio.sleep(600)
        rows = [event for event in world.log.events if (event.kind, event.subject) == ("error", "watcher:x")]
        told = [
            ((row.moment.at - began) // 1_000_000, json.loads(row.data).get("repeats", 0)) for row in rows
        ]
        assert told == [(0, 0), (30, 2)]
        (one,) = (one for one in incidents_after(Incidents(), rows).at(world.clock.now()))
        assert (one.began.at - began, one.times) == (0, 4)

    simulate(story, ONE)


def test_errors_that_came_again_for_longer_than_they_wait_to_be_recorded_are_all_told() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        began = world.clock.now().at
        for _ in range(150):
            daemon.reporter("watcher:x", "it failed")
            await asyncio.sleep(10)
        free_disk(world)
        await asyncio.sleep(1_200)
        rows = [event for event in world.log.events if (event.kind, event.subject) == ("error", "watcher:x")]
        times = sum(json.loads(row.data).get("repeats", 0) + 1 for row in rows)
        assert (rows[0].moment.at - began, times) == (0, 150)

    simulate(story, ONE)


def test_what_was_held_is_written_in_order_when_there_is_space() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        rows = len(world.log.events)
        fill_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(60)
        assert len(world.log.events) == rows
        free_disk(world)
        await asyncio.sleep(1)
        kinds = [event.kind for event in world.log.events[rows:] if event.kind != "error"]
        acted = ["effect", "effect-executing", "effect-acked"]
        assert kinds[:5] == ["process-died", *acted, "process-up"]
        assert kinds[5:] == ["condition-raised", *acted, "condition-cleared", *acted]

    simulate(story, ONE)


def test_the_view_after_a_full_disk_is_the_fold_of_the_log() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        fill_disk(world)
        await asyncio.sleep(30)
        free_disk(world)
        await asyncio.sleep(30)
        assert daemon.parts.view() == FOLD(FOLD.start, world.log.events)

    simulate(story, ONE)


def test_a_client_is_not_acknowledged_while_the_disk_is_full() -> None:
    async def story(world: World) -> None:
        await world.start()
        fill_disk(world)
        with pytest.raises(LogUnavailable):
            await world.ask(Paused())

    simulate(story, ONE)


def test_what_must_not_run_twice_does_not_run_on_a_full_disk() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        fill_disk(world)
        with pytest.raises(LogUnavailable):
            await world.ask(Effect(action="note", key="k"))
        await asyncio.sleep(10)
        assert world.executors["note"].began == []

    simulate(story, ONE)


def test_a_daemon_starts_on_a_full_disk() -> None:
    async def story(world: World) -> None:
        fill_disk(world)
        await world.start()
        await asyncio.sleep(1)
        assert "gateway" in world.host.processes

    simulate(story, ONE)


NOTICE = "notify:resource:unwritten"


def test_people_are_told_while_nothing_can_be_written_and_when_it_can_be_again() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(60)
        assert len(world.executors["notify"].began) == 1
        free_disk(world)
        await asyncio.sleep(60)
        assert len(world.executors["notify"].began) == 2
        first, second = (json.loads(event.data)["params"] for event in world.events("effect", subject=NOTICE))
        assert first["title"] == "the log can't be written"
        assert "the disk is full. Pulse acts from memory" in first["text"]
        assert second["over"]
        assert [event.kind for event in world.events("condition-raised", "condition-cleared")] == [
            "condition-raised",
            "condition-cleared",
        ]

    simulate(story, ONE)


def test_a_hiccup_of_the_disk_is_not_worth_a_notice() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(4)
        free_disk(world)
        await asyncio.sleep(60)
        assert not world.events("condition-raised")
        assert not world.executors["notify"].began

    simulate(story, ONE)


def test_a_daemon_that_died_after_it_said_so_is_not_the_last_to_speak_of_it() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.end()
        await world.log.append(Draft(ConditionRaised(evidence="the disk is full"), "unwritten"))
        await world.start()
        await asyncio.sleep(2)
        assert [event.subject for event in world.events("condition-cleared")] == ["unwritten"]

    simulate(story, ONE)


def test_afterwards_the_log_says_for_how_long_it_could_not_be_written() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(60)
        free_disk(world)
        await asyncio.sleep(60)
        (told,) = [event for event in world.events("error") if event.subject == "log"]
        words = json.loads(told.data)["message"]
        since, until = (local_text(START + after * US_PER_SECOND)[:18] for after in (300, 360))
        assert re.match(rf"could not be written from {since}\d.* to {until}\d", words)
        assert words.endswith("; 9 events were held")

    simulate(story, ONE)


STORM = {
    "process": [
        {
            "name": "gateway",
            "start": ["gateway"],
            "restart": {"max": 1_000, "backoff": "0s", "healthy_after": "1s"},
        }
    ],
    "log": [{"path": "/var/log/app.log", "keywords": ["ERROR"], "lines_per_minute": 100_000}],
}


def test_deaths_are_answered_however_many_log_lines_a_full_disk_takes_not() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        world.watchers = (of_logs(world, logs),)
        daemon = await world.start()
        await asyncio.sleep(300)
        fill_disk(world)
        for number in range(1_500):
            logs.write("/var/log/app.log", f"ERROR {chr(97 + number % 10)} in {number // 10}")
            await asyncio.sleep(0.02)
        for deaths in range(1, 11):
            world.host.kill("gateway")
            await asyncio.sleep(2)
            status = daemon.report()
            (alive,) = (one.found for one in world.host.processes.values())
            (said,) = status["processes"]
            assert (said["state"], said["pid"], said["restarts"]) == ("up", alive.pid, deaths)
            assert status["log"]["unwritten"] <= 1_000
        assert status["log"]["left_out"] > 500
        free_disk(world)
        await asyncio.sleep(2)
        status = daemon.report()
        assert (status["log"]["unwritten"], status["log"]["left_out"]) == (0, 0)
        assert daemon.parts.view() == FOLD(FOLD.start, world.log.events)
        told = [json.loads(event.data)["message"] for event in world.events("error", subject="log")]
        assert "left out: " in told[-1]
        assert "log-matched" in told[-1]

    simulate(story, STORM)


def test_people_are_told_that_the_log_is_gone_and_the_dead_are_restarted_all_the_same() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        rows = len(world.log.events)
        world.log.gone = "events.db was deleted; its rows are saved"
        await asyncio.sleep(4)
        (condition,) = daemon.report()["conditions"]
        assert (condition["name"], condition["evidence"]) == ("log-gone", world.log.gone)
        assert len(world.executors["notify"].began) == 1
        world.host.kill("gateway")
        await asyncio.sleep(60)
        (alive,) = (one.found for one in world.host.processes.values())
        (said,) = daemon.report()["processes"]
        assert (said["state"], said["pid"]) == ("up", alive.pid)
        assert len(world.executors["notify"].began) == 1
        with pytest.raises(LogUnavailable, match="its rows are saved"):
            await world.ask(Paused())
        assert len(world.log.events) == rows

    simulate(story, ONE)


def hang_disk(world: World) -> asyncio.Event:
    """Commits do not return until the event is set."""
    freed = asyncio.Event()

    async def wait() -> None:
        await freed.wait()

    world.log.commit = wait
    return freed


def test_a_disk_that_does_not_answer_keeps_nothing_dead_for_longer_than_two_seconds() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        freed = hang_disk(world)
        world.host.kill("gateway")
        await asyncio.sleep(PATIENCE + 0.1)
        assert "gateway" in world.host.processes
        world.host.kill("gateway")  # from now on nobody waits any more
        await asyncio.sleep(1.5)  # its backoff
        assert "gateway" in world.host.processes
        await asyncio.sleep(30)
        assert "the log hangs" in daemon.report()["conditions"][0]["evidence"]
        assert len(world.executors["notify"].began) == 1
        assert daemon.report()["processes"][0]["state"] == "up"
        freed.set()
        world.log.commit = None
        await asyncio.sleep(5)
        assert daemon.report()["log"]["unwritten"] == 0
        assert daemon.parts.view() == FOLD(FOLD.start, world.log.events)
        for kind in ("process-died", "process-up", "effect-acked"):
            assert len(world.events(kind, subject="gateway" if kind != "effect-acked" else None)) >= 2
        wished = [event.id for event in world.events("effect")]
        assert len(world.events("effect-executing")) == len(wished)  # each was begun once, and so recorded
        assert len(world.host.starts) == 3

    simulate(story, ONE)


def test_what_a_person_asks_for_is_answered_truly_by_a_disk_that_hangs() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        freed = hang_disk(world)
        asked = asyncio.ensure_future(world.ask(Paused(why="before")))
        await asyncio.sleep(0.1)
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert not asked.done()  # nobody knows yet whether it is recorded
        with pytest.raises(LogUnavailable, match="hangs"):
            await world.ask(Paused(why="meanwhile"))
        freed.set()
        world.log.commit = None
        await asked
        await asyncio.sleep(5)
        assert [json.loads(event.data)["why"] for event in world.events("paused")] == ["before"]

    simulate(story, ONE)


def test_what_may_not_run_twice_begins_when_its_beginning_is_recorded_late() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        await world.ask(Paused())
        await world.ask(Effect(action="note", key="k"))
        freed = asyncio.Event()

        async def hang_from_its_beginning() -> None:
            if world.events("resumed"):
                await freed.wait()

        world.log.commit = hang_from_its_beginning
        await world.ask(Resumed())
        await asyncio.sleep(30)
        assert world.executors["note"].began == []
        freed.set()
        await asyncio.sleep(5)
        assert len(world.executors["note"].began) == 1
        assert len(world.events("effect-acked")) >= 1

    simulate(story, ONE)


def test_what_is_recorded_just_after_nobody_waits_for_it_any_more_is_begun_and_not_held_besides() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)

        async def answer_too_late() -> None:
            await asyncio.sleep(PATIENCE)
            for _ in range(10):
                await asyncio.sleep(0)
                if daemon.journal.hangs:
                    return

        world.log.commit = answer_too_late
        world.host.kill("gateway")
        await asyncio.sleep(PATIENCE + 0.1)
        assert len(world.host.starts) == 2
        world.log.commit = None
        await asyncio.sleep(10)
        assert daemon.report()["log"]["unwritten"] == 0
        assert daemon.parts.view() == FOLD(FOLD.start, world.log.events)
        assert len(world.events("effect")) == len(world.events("effect-acked")) == 2

    simulate(story, ONE)
