"""Followed logs as the whole daemon lives with them, in virtual time."""

import asyncio
import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from pulse_adapters.memory.logs import MemoryLogs
from pulse_adapters.memory.stores import MemoryCheckpoints, MemoryVitals
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.kinds import ReloadRequested
from pulse_core.ports.logs import LogBatch, MatchedLines, line_cost
from pulse_core.settings.settings import Settings
from pulse_core.watch.error_log import MAX_COST, MAX_DRAFTS, ErrorLog, latest_places
from tests.simulation.senses import of_logs
from tests.simulation.world import World, simulate

APP = "/var/log/app.log"
LOG = {"path": APP, "keywords": ["ERROR"]}
ONE = {"log": [LOG]}


async def start(world: World, logs: MemoryLogs) -> ErrorLog:
    """A daemon that follows logs."""
    logs.follow((), {}, ())  # a reader ends with its daemon
    logs.take()
    watcher = of_logs(world, logs)
    world.watchers = (watcher,)
    await world.start()
    await asyncio.sleep(0.1)
    return watcher


def matched(world: World) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in world.events("log-matched")]


def lines(world: World) -> list[str]:
    return [line for row in matched(world) for line in row.get("lines", ())]


def notices(world: World) -> list[str]:
    wishes = [json.loads(event.data) for event in world.events("effect")]
    return [wish["params"]["title"] for wish in wishes if wish["action"] == "notify"]


def unwritable(world: World) -> None:
    async def full() -> None:
        raise LogUnavailable("the disk is full")

    world.log.commit = full


def test_a_line_becomes_an_event_and_a_notice_that_executes_at_once() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        await asyncio.sleep(100)
        began = world.clock.now().mono
        logs.write(APP, "fine", "ERROR one")
        await asyncio.sleep(0.05)
        (executing,) = world.events("effect-executing")
        assert executing.mono - began <= 20_000
        assert notices(world) == [f"errors in {APP}"]
        (row,) = matched(world)
        assert row == {"severity": "error", "lines": ["ERROR one"], "count": 1, "place": {"total": 2}}

    simulate(story, {**ONE, "daemon": {"tick_ms": 60_000}})


def test_a_line_leaves_its_file_without_what_is_written_in_it_as_a_secret() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        await asyncio.sleep(100)
        logs.write(APP, "ERROR login failed: token=abc123secret password: hunter22", "ERROR plain")
        await asyncio.sleep(10)
        assert matched(world)[0]["lines"] == ["ERROR login failed: token=*** password: ***", "ERROR plain"]
        assert any("token=***" in event.data for event in world.events("effect"))
        assert not [event for event in world.events() if "abc123" in event.data or "hunter" in event.data]

    simulate(story, ONE)


def test_the_event_its_effect_and_the_claim_are_one_commit() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        commits: list[int] = []

        async def counted() -> None:
            commits.append(len(world.log.events))

        world.log.commit = counted
        logs.write(APP, "ERROR one")
        await asyncio.sleep(0.01)
        kinds = [event.kind for event in world.log.events[commits[0] :]]
        assert kinds[:3] == ["log-matched", "effect", "effect-executing"]
        assert commits.count(commits[0]) == 1
        assert commits[1] >= commits[0] + 3

    simulate(story, ONE)


def test_lines_that_follow_are_recorded_together_and_wake_once_a_second() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        began = world.clock.now().mono
        for number in range(250):
            logs.write(APP, f"ERROR {number}")
            await asyncio.sleep(0.02)
        await asyncio.sleep(2)
        assert lines(world) == logs.lines[APP]
        rows = world.events("log-matched")
        assert rows[0].mono - began < 20_000
        moments = sorted({row.mono for row in rows})
        assert all(late - early >= 1_000_000 for early, late in pairwise(moments))

    simulate(story, ONE)


def test_what_many_logs_say_at_once_is_recorded_in_parts() -> None:
    logs, names = MemoryLogs(), [f"/var/log/{number}.log" for number in range(350)]

    async def story(world: World) -> None:
        await start(world, logs)
        for name in names:
            logs.write(name, "ERROR")
        await asyncio.sleep(5)
        rows = world.events("log-matched")
        assert [row.subject for row in rows] == names
        assert max(Counter(row.mono for row in rows).values()) <= MAX_DRAFTS

    simulate(story, {"log": [{"path": name, "keywords": ["ERROR"]} for name in names]})


def test_of_a_flood_few_lines_are_folded_at_once_and_all_are_recorded() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        for number in range(60):
            logs.write(APP, *(f"ERROR {number} {'x' * (number % 4 * 300)}" for _ in range(50)))
        await asyncio.sleep(20)
        rows, most = world.events("log-matched"), MAX_COST + 50 * line_cost("x" * 900)
        assert lines(world) == logs.lines[APP]
        for at in {row.mono for row in rows}:
            said = [line for row in rows if row.mono == at for line in json.loads(row.data)["lines"]]
            assert sum(map(line_cost, said)) <= most

    simulate(story, {"log": [{**LOG, "lines_per_minute": 100_000}]})


def test_lines_of_a_quiet_log_are_recorded_before_those_of_a_flood_that_wait() -> None:
    logs, quiet = MemoryLogs(), "/var/log/quiet.log"

    async def story(world: World) -> None:
        await start(world, logs)
        logs.write(APP, "ERROR first")
        for number in range(200):
            logs.write(APP, *(f"ERROR {number}" for _ in range(50)))
        await asyncio.sleep(3)
        began = world.clock.now().mono
        logs.write(quiet, "ERROR quiet")
        await asyncio.sleep(30)
        (row,) = (event for event in world.events("log-matched") if event.subject == quiet)
        assert row.mono - began <= 1_000_000
        assert set(lines(world)) == {*logs.lines[APP], "ERROR quiet"}

    simulate(story, {"log": [{**LOG, "lines_per_minute": 100_000}, {**LOG, "path": quiet}]})


@pytest.mark.parametrize("lost", ["nothing", "checkpoints", "vitals"])
def test_a_crash_at_any_time_loses_nothing_and_tells_nothing_twice(lost: str) -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        logs.write(APP, "ERROR -1")
        await asyncio.sleep(0.1)  # what was never recorded, and is in no sample, is history
        for number in range(60):
            logs.write(APP, f"ERROR {number}", "fine")
            await asyncio.sleep((number * 7 % 5) / 1_000)
            if number % 3 == 0:
                await world.crash()
                logs.write(APP, f"ERROR down {number}")
                if lost == "checkpoints":
                    world.checkpoints = MemoryCheckpoints()
                if lost == "vitals":
                    world.vitals = MemoryVitals()
                await start(world, logs)
        await asyncio.sleep(1)
        assert lines(world) == [line for line in logs.lines[APP] if line != "fine"]

    simulate(story, ONE)


def test_a_log_that_never_said_anything_is_read_on_after_a_restart_too() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        logs.write(APP, "ERROR history")
        await start(world, logs)
        await asyncio.sleep(70)
        logs.write(APP, "fine", "fine")
        await asyncio.sleep(70)
        await world.crash()
        logs.write(APP, "ERROR while it was down")
        await start(world, logs)
        assert lines(world) == ["ERROR while it was down"]

    simulate(story, ONE)


def test_lines_wait_for_a_disk_that_takes_nothing() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        await asyncio.sleep(60)
        unwritable(world)
        logs.write(APP, "ERROR one")
        await asyncio.sleep(1)
        assert world.executors["notify"].done  # a person is told all the same
        assert matched(world) == []
        logs.write(APP, "ERROR two")
        await asyncio.sleep(120)
        world.log.commit = None
        await asyncio.sleep(30)
        assert lines(world) == ["ERROR one", "ERROR two"]

    simulate(story, ONE)


def test_what_no_disk_took_before_a_crash_is_said_again() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        await asyncio.sleep(100)
        unwritable(world)
        logs.write(APP, "ERROR one")
        await asyncio.sleep(200)
        samples = await world.vitals.recent(0)
        kept = [json.loads(sample.data["places"])["of"] for sample in samples if "places" in sample.data]
        assert {places[APP]["total"] for places in kept} == {0}
        await world.crash()
        world.log.commit = None
        await start(world, logs)
        assert lines(world) == ["ERROR one"]

    simulate(story, ONE)


def test_a_storm_is_a_condition_with_its_rate_until_it_is_calm() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        logs.write(APP, *["ERROR"] * 3_000)
        await asyncio.sleep(1)
        (raised,) = world.events("condition-raised")
        data = json.loads(raised.data)
        assert (raised.subject, data["state"], data["value"], data["bound"]) == (
            f"log:{APP}",
            "storm",
            3_000,
            600,
        )
        assert sum(row["count"] for row in matched(world)) == 3_000
        assert len(lines(world)) == 600
        assert len(matched(world)) == 6
        await asyncio.sleep(50)
        assert world.events("condition-cleared") == []
        await asyncio.sleep(20)
        (cleared,) = world.events("condition-cleared")
        assert cleared.mono - raised.mono < 70_000_000
        assert notices(world) == [f"storm in {APP}"]
        await asyncio.sleep(700)
        assert notices(world) == [f"storm in {APP}", f"resolved: errors in {APP}"]

    simulate(story, ONE)


class ManyFiles(MemoryLogs):
    """A reader of many files, whose lines are only counted once all of them together have said enough."""

    def count(self, source: str, number: int) -> None:
        self._heard.append(LogBatch(source, {"total": number}, (MatchedLines(0, (), number),)))
        self._news()


def test_a_storm_of_many_files_each_within_its_limit_is_one_condition_of_their_rule() -> None:
    logs = ManyFiles()

    async def story(world: World) -> None:
        await start(world, logs)
        for number in range(20):
            logs.count(f"/var/log/{number}.log", 100)
        logs.count("/var/log/loud.log", 700)
        await asyncio.sleep(1)
        raised = {one.subject: json.loads(one.data)["value"] for one in world.events("condition-raised")}
        assert raised == {f"log:{APP}": 2_000, "log:/var/log/loud.log": 700}
        await asyncio.sleep(70)
        assert {one.subject for one in world.events("condition-cleared")} == raised.keys()

    simulate(story, ONE)


def test_a_storm_outlasts_a_restart_and_is_not_raised_twice() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        logs.write(APP, *["ERROR"] * 3_000)
        await asyncio.sleep(1)
        await world.crash()
        await start(world, logs)
        await asyncio.sleep(30)
        assert world.events("condition-cleared") == []
        await asyncio.sleep(40)
        assert len(world.events("condition-cleared")) == len(world.events("condition-raised")) == 1

    simulate(story, ONE)


def test_new_settings_are_followed_after_a_reload_and_history_is_not_told() -> None:
    logs, other = MemoryLogs(), "/var/log/other.log"

    async def story(world: World) -> None:
        logs.write(other, "ERROR history")
        await start(world, logs)
        logs.write(APP, "ERROR one")
        await asyncio.sleep(1)
        critical = {"path": other, "keywords": ["ERROR"], "severity": "critical"}
        world.settings = Settings.model_validate({"log": [LOG, critical]})
        await world.ask(ReloadRequested())
        await asyncio.sleep(1)
        logs.write(APP, "ERROR two")
        logs.write(other, "ERROR three")
        await asyncio.sleep(1)
        assert lines(world) == ["ERROR one", "ERROR three", "ERROR two"]  # first who has said less
        assert [row["severity"] for row in matched(world)] == ["error", "critical", "error"]

    simulate(story, ONE)


def test_a_log_that_is_followed_anew_is_told_though_its_position_counts_less_than_before() -> None:
    """A position begins with the wall clock, which may have been set back since."""
    logs = MemoryLogs()

    async def story(world: World) -> None:
        other = {"path": "/var/log/other.log", "keywords": ["ERROR"]}
        await start(world, logs)
        logs.write(APP, "ERROR one", "fine", "fine")
        await asyncio.sleep(1)
        for followed in (other, LOG):
            logs.lines.pop(APP, None)
            world.settings = Settings.model_validate({"log": [followed]})
            await world.ask(ReloadRequested())
            await asyncio.sleep(1)
        logs.write(APP, "ERROR two")
        await asyncio.sleep(1)
        assert lines(world) == ["ERROR one", "ERROR two"]

    simulate(story, ONE)


@pytest.mark.parametrize("places", ["{", "[]", 7, None, '{"of": 1}'])
def test_a_sample_that_nobody_understands_is_as_none(places: Any) -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        world.vitals.sample("error-log", world.clock.now(), {"places": places})
        await start(world, logs)
        logs.write(APP, "ERROR one")
        await asyncio.sleep(1)
        assert lines(world) == ["ERROR one"]
        assert world.events("error") == []

    simulate(story, ONE)


def test_without_settings_there_is_next_to_nothing_to_do() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        await asyncio.sleep(3_600)
        samples = [sample for sample in await world.vitals.recent(0) if sample.key == "error-log"]
        assert len(samples) <= 61
        assert matched(world) == []

    simulate(story, {})


def test_a_sample_tells_how_much_is_followed_and_places_are_kept_at_least_every_hour() -> None:
    logs = MemoryLogs()

    async def story(world: World) -> None:
        await start(world, logs)
        logs.write(APP, "ERROR", "ERROR")
        await asyncio.sleep(3 * 3_600)
        samples = [sample.data for sample in await world.vitals.recent(0) if sample.key == "error-log"]
        assert sum(data["lines"] for data in samples) == 2
        assert samples[-1]["sources"] == 1
        assert 3 <= sum("places" in data for data in samples) <= 6

    simulate(story, ONE)


def test_of_two_places_the_one_that_was_read_further_is_the_later() -> None:
    logged, sampled = {"/a": {"total": 5}, "/b": {"total": 1}}, {"/a": {"total": 4}, "/c": {}}
    assert latest_places(logged, sampled) == {"/a": {"total": 5}, "/b": {"total": 1}, "/c": {}}
