"""Checks as the whole daemon lives with them, in virtual time: each at its own pace, and what follows from each."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.memory.commands import MemoryCommands
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.logs import MemoryLogs
from pulse_adapters.memory.network import MemoryProber
from pulse_core.capability import WatcherContext
from pulse_core.checks.conclusions import newest_words, overdue_us
from pulse_core.checks.outcomes import FileStatus
from pulse_core.checks.settings import CHECKS
from pulse_core.checks.watcher import Checks
from pulse_core.home import HomeLayout
from pulse_core.model.kinds import ProcessStopRequested
from pulse_core.model.vitals import Window
from pulse_core.ports.commands import CommandAnswer
from pulse_core.ports.log import Listener
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.incidents import IncidentFold
from pulse_core.settings.settings import Settings
from tests.simulation.senses import facts_of, of_logs, settings_of
from tests.simulation.world import RARE_SCANS, World, simulate

MINUTE, HOUR = 60, 3_600
URL, LOG = "http://127.0.0.1:80/", "/var/log/app.log"
DEAD = ProbeResult(Trouble.TIMEOUT, "it did not answer", 5_000)
BROKEN = CommandAnswer(False, "'/bin/check' exited with 2: it is broken", 2, 5.0)
GATEWAY = {"name": "gateway", "start": ["gateway"]}


class Machine:
    """A world with commands, pages, files and logs that checks look at."""

    def __init__(self, world: World) -> None:
        self.world, self.prober, self.commands = world, MemoryProber(), MemoryCommands()
        self.files: dict[str, FileStatus | OSError] = {}
        self.logs = MemoryLogs()
        world.executors["run-command"] = self.mends = MemoryExecutor("run-command")

    async def start(self) -> None:
        """A new daemon."""
        world, nothing, listeners = self.world, None, list[Listener]()

        def window(key: str) -> Window:
            return world.daemon.watch.windows.get(key, Window()) if world.daemon else Window()

        context: Any = WatcherContext(
            prober=self.prober,
            commands=self.commands,
            clock=world.clock,
            settings=settings_of(world),
            state=facts_of(world),
            window=window,
            programs=nothing,  # type: ignore[arg-type]  # it starts none
            home=HomeLayout(Path("/home")),
            append=lambda draft: world.daemon.gate.append_own(draft),  # type: ignore[union-attr]
            listen=listeners.append,
        )
        self.logs.follow((), {}, ())
        world.watchers = (Checks(context, self.ask), of_logs(world, self.logs))
        starting = asyncio.ensure_future(world.start())
        await asyncio.sleep(0)  # it forgets who listened to the one before
        for listener in listeners:
            world.log.listen(listener)
        await starting

    async def again(self) -> None:
        """The daemon dies, and another one takes its place."""
        await self.world.crash()
        await self.start()

    async def ask(self, path: str) -> FileStatus | None:
        """The status of a file."""
        found = self.files.get(path)
        if isinstance(found, OSError):
            raise found
        return found

    def news(self) -> list[str]:
        """What was concluded, in order: + or -, the name, and the state."""
        events = self.world.events("condition-raised", "condition-cleared")
        states = [json.loads(event.data).get("state", "") for event in events]
        signs = ["+" if event.kind == "condition-raised" else "-" for event in events]
        return [
            f"{sign}{one.subject} {state}".strip()
            for sign, one, state in zip(signs, events, states, strict=True)
        ]

    def wishes(self, action: str) -> list[dict[str, Any]]:
        found = [json.loads(event.data) for event in self.world.events("effect")]
        return [wish for wish in found if wish["action"] == action]

    def titles(self) -> list[str]:
        """What people were told."""
        return [wish["params"]["title"] for wish in self.wishes("notify")]

    def sample(self, name: str) -> dict[str, Any]:
        """What the newest sample says of a check."""
        assert self.world.daemon is not None
        last = self.world.daemon.watch.newest("checks")
        return dict(last.data[name]) if last else {}


def live(story: Callable[[Machine], Awaitable[None]], *checks: dict[str, Any], **settings: Any) -> None:
    """Tell a story of a daemon with these checks, which begins with ten minutes in which all is well."""

    async def told(world: World) -> None:
        machine = Machine(world)
        await machine.start()
        await asyncio.sleep(10 * MINUTE)
        await story(machine)
        assert world.events("error") == []

    simulate(told, {**RARE_SCANS, "check": list(checks), **settings})


def test_each_looks_at_its_own_pace_and_one_that_hangs_holds_up_no_other() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.hanging.add("/bin/slow")
        machine.commands.asked.clear()
        await asyncio.sleep(10 * MINUTE)
        asked = [one.argv[0] for one in machine.commands.asked]
        assert 58 <= asked.count("/bin/fast") <= 61
        assert asked.count("/bin/slow") == 2
        assert machine.sample("fast")["ok"]
        assert (machine.sample("slow")["ok"], machine.sample("slow")["latency_ms"]) == (False, 240_000)
        assert machine.news() == ["+check:slow failing"]
        assert {one.whose for one in machine.commands.asked} == {"check:fast", "check:slow"}

    fast = {"name": "fast", "command": ["/bin/fast"], "every": "10s"}
    live(story, fast, {"name": "slow", "command": ["/bin/slow"], "every": "5m", "timeout": "4m"})


def test_how_long_ago_a_check_was_seen_is_told_where_its_next_look_is_overdue_though_another_has_looked() -> (
    None
):
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/slow"] = BROKEN
        await asyncio.sleep(MINUTE)
        machine.commands.hanging.add("/bin/slow")
        await asyncio.sleep(3 * MINUTE)
        daemon = machine.world.daemon
        assert daemon is not None
        seen = daemon._last_whole_snapshot()
        seen = replace(seen, now=machine.world.clock.now(), windows=daemon.watch.windows)
        slow, fast = CHECKS.of(seen.settings)
        assert newest_words(slow, seen).endswith(": it is broken, seen 3 min ago")
        assert (overdue_us(fast, seen), "overdue_us" in machine.sample("fast")) == (0, False)

    slow = {"name": "slow", "command": ["/bin/slow"], "every": "30s", "timeout": "4m"}
    live(story, slow, {"name": "fast", "command": ["/bin/fast"], "every": "10s"})


def test_checks_that_are_due_together_are_told_by_few_samples() -> None:
    async def story(machine: Machine) -> None:
        samples = [one for one in await machine.world.vitals.recent(0) if one.key == "checks"]
        assert 20 <= len(samples) <= 22

    live(story, *({"name": f"c{number}", "command": [f"/bin/{number}"]} for number in range(50)))


def test_a_page_that_fails_has_its_process_restarted_once_it_is_proven() -> None:
    async def story(machine: Machine) -> None:
        machine.prober.says[URL] = DEAD
        while len(machine.world.host.starts) == 1:
            await asyncio.sleep(1)
        assert machine.news() == ["+check:page failing"]
        machine.prober.says.clear()
        await asyncio.sleep(3 * MINUTE)
        assert machine.news() == ["+check:page failing", "-check:page"]
        assert machine.titles() == []
        (raised,) = machine.world.events("condition-raised")
        assert json.loads(raised.data)["evidence"] == f"{URL}: it did not answer; 3 checks in a row failed"

    check = {"name": "page", "http": URL, "then": "restart gateway"}
    live(story, check, process=[GATEWAY])


def test_while_its_process_is_stopped_nothing_is_concluded_or_told() -> None:
    async def story(machine: Machine) -> None:
        await machine.world.ask(ProcessStopRequested(expires_us=HOUR * 1_000_000), "gateway")
        machine.prober.says[URL] = DEAD
        await asyncio.sleep(20 * MINUTE)
        assert (machine.news(), machine.titles()) == ([], [])
        assert machine.sample("page")["excused"] == "gateway is stopped by person"

    check = {"name": "page", "http": URL, "then": "restart gateway"}
    live(story, check, process=[GATEWAY])


def test_a_command_that_mends_it_is_run_and_verified() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/check"] = BROKEN
        while not machine.mends.began:
            await asyncio.sleep(1)
        machine.commands.says.clear()
        await asyncio.sleep(2 * MINUTE)
        assert machine.news() == ["+check:it failing", "-check:it"]
        assert machine.titles() == []
        (wish,) = machine.wishes("run-command")
        assert wish["params"] == {"argv": ["/bin/mend"], "for_condition": "check:it"}

    live(story, {"name": "it", "command": ["/bin/check"], "then": "run-command", "run": ["/bin/mend"]})


def test_what_no_command_mends_is_tried_so_often_and_told() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/check"] = BROKEN
        await asyncio.sleep(2 * HOUR)
        assert len(machine.wishes("run-command")) == 3
        told = ["check it fails"] * 2  # that it does, and that it is not tried again
        assert machine.titles() == told
        machine.commands.says.clear()
        await asyncio.sleep(MINUTE)
        assert machine.titles() == [*told, "resolved: check it"]

    live(story, {"name": "it", "command": ["/bin/check"], "then": "run-command", "run": ["/bin/mend"]})


@pytest.mark.parametrize(
    ("tries", "held"), [(1, "the pause between two tries"), (3, "the number of its tries")]
)
def test_what_a_person_mends_after_commands_that_did_not_was_not_helped(tries: int, held: str) -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/check"] = BROKEN
        while len(machine.mends.began) < tries:
            await asyncio.sleep(1)
        await asyncio.sleep(40)
        machine.commands.says.clear()
        await asyncio.sleep(MINUTE)
        fold = IncidentFold()
        for event in machine.world.events():
            fold.take(event)
        (told,) = [one.spelled() for one in fold.state.at(machine.world.clock.now())]
        assert (told["ended"] is None, told["helped"]) == (False, False)
        assert any(line.endswith(f" by {held}") for line in told["delays"])

    live(story, {"name": "it", "command": ["/bin/check"], "then": "run-command", "run": ["/bin/mend"]})


def test_the_age_of_a_file_is_followed() -> None:
    async def story(machine: Machine) -> None:
        assert machine.news() == ["+check:file failing"]
        machine.files["/x"] = FileStatus(10, machine.world.clock.now().at)
        await asyncio.sleep(MINUTE)
        assert machine.news()[1:] == ["-check:file"]
        await asyncio.sleep(HOUR)
        assert machine.news()[2:] == ["+check:file high"]
        assert machine.sample("file")["age_s"] > 3_600

    live(story, {"name": "file", "file": "/x", "age_over": "1h"})


def test_a_file_system_that_does_not_answer_is_told_and_does_not_count_as_a_missing_file() -> None:
    async def story(machine: Machine) -> None:
        machine.files["/x"] = TimeoutError("the file system of /x does not answer")
        await asyncio.sleep(5 * MINUTE)
        assert machine.news() == ["+check:file unknown"]
        (wish,) = machine.wishes("notify")
        assert "the file system of /x does not answer" in wish["params"]["text"]
        machine.files["/x"] = FileStatus(1, 0)
        await asyncio.sleep(MINUTE)
        assert machine.news() == ["+check:file unknown", "-check:file"]

    live(story, {"name": "file", "file": "/x", "missing": "good"})


def test_what_stands_is_told_by_the_newest_look() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/check"] = BROKEN
        while not machine.news():
            await asyncio.sleep(1)
        machine.commands.says["/bin/check"] = CommandAnswer(
            False, "'/bin/check' exited with 3: it burns", 3, 5.0
        )
        await asyncio.sleep(31)
        assert machine.world.daemon is not None
        (condition,) = machine.world.daemon.report()["conditions"]
        assert condition["evidence"] == "'/bin/check' exited with 3: it burns"

    live(story, {"name": "it", "command": ["/bin/check"]})


def test_matching_lines_are_counted_as_they_come_and_are_forgotten() -> None:
    async def story(machine: Machine) -> None:
        machine.logs.write(LOG, "ERROR 1", "fine")
        await asyncio.sleep(20 * MINUTE)
        assert (machine.news(), machine.titles()) == ([], [])
        for number in range(3):
            machine.logs.write(LOG, f"ERROR {number}")
            await asyncio.sleep(1)
        await asyncio.sleep(2)
        assert machine.news() == ["+check:errors high"]
        await asyncio.sleep(20 * MINUTE)
        assert machine.news() == ["+check:errors high", "-check:errors"]
        assert machine.titles() == ["check errors fails", "resolved: check errors"]

    log = {"path": LOG, "keywords": ["ERROR"]}
    live(story, {"name": "errors", "log": LOG, "lines": 3, "every": "10m"}, log=[log])


def test_a_vital_is_compared_with_its_bounds() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/it"] = CommandAnswer(True, "well", 0, 3_000)
        await asyncio.sleep(4 * MINUTE)
        assert machine.news() == []
        await asyncio.sleep(3 * MINUTE)
        assert machine.news() == ["+check:slow high"]
        machine.commands.says.clear()
        await asyncio.sleep(2 * MINUTE)
        assert machine.news() == ["+check:slow high", "-check:slow"]

    slow = {"name": "slow", "vital": "checks.it.latency_ms", "over": 1_000, "for": "5m"}
    live(story, {"name": "it", "command": ["/bin/it"]}, slow)


def test_that_a_check_is_well_only_by_a_bound_that_was_changed_is_told() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says["/bin/it"] = CommandAnswer(True, "well", 0, 3_000)
        await asyncio.sleep(2 * MINUTE)
        assert machine.titles() == ["check slow fails"]
        checks = [it, {**slow, "over": 5_000}]
        machine.world.settings = Settings.model_validate({**RARE_SCANS, "check": checks})
        assert machine.world.daemon is not None
        machine.world.daemon.request_reload()
        await asyncio.sleep(2 * MINUTE)
        notice = machine.wishes("notify")[-1]["params"]
        words = "it is well by its new bound: checks.it.latency_ms is 3,000 (good: under 5,000)"
        assert (notice["title"], notice["text"]) == ("resolved: check slow", words)
        machine.world.settings = Settings.model_validate({**RARE_SCANS, "check": [it, slow]})
        machine.world.daemon.request_reload()
        await asyncio.sleep(2 * MINUTE)
        machine.commands.says.clear()
        await asyncio.sleep(2 * MINUTE)
        assert machine.wishes("notify")[-1]["params"]["text"] == "it is well"

    it, slow = (
        {"name": "it", "command": ["/bin/it"]},
        {"name": "slow", "vital": "checks.it.latency_ms", "over": 1_000},
    )
    live(story, it, slow)


def test_a_vital_that_nobody_senses_is_told() -> None:
    async def story(machine: Machine) -> None:
        assert machine.news() == ["+check:slip unknown"]
        assert machine.titles() == ["check slip fails"]

    live(story, {"name": "slip", "vital": "gpu.heat", "over": 90})


def test_evidence_and_time_of_before_a_crash_of_pulse_count_after_it() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.says |= {"/bin/check": BROKEN, "/bin/long": BROKEN}
        for _ in range(7):
            await asyncio.sleep(40)
            await machine.again()
            await asyncio.sleep(5)
        assert machine.news() == ["+check:it failing", "+check:long failing"]

    long = {"name": "long", "command": ["/bin/long"], "for": "4m"}
    live(story, {"name": "it", "command": ["/bin/check"], "evidence": 4}, long)


def test_what_is_not_checked_any_more_is_over_and_what_is_new_is_looked_at() -> None:
    async def story(machine: Machine) -> None:
        assert machine.news() == ["+check:gone failing"]
        checks = [{"name": "new", "file": "/y", "every": "1h"}]
        machine.world.settings = Settings.model_validate({"check": checks})
        assert machine.world.daemon is not None
        machine.world.daemon.request_reload()
        await asyncio.sleep(5)
        assert sorted(machine.news()[1:]) == ["+check:new failing", "-check:gone"]
        await asyncio.sleep(MINUTE)
        assert machine.titles() == ["check gone fails", "no longer watched: check gone", "check new fails"]

    live(story, {"name": "gone", "file": "/x", "every": "1h"})


def test_a_check_that_is_changed_looks_anew_at_once_and_the_look_of_before_is_ended() -> None:
    async def story(machine: Machine) -> None:
        machine.commands.hanging.add("/bin/it")
        await asyncio.sleep(50 * MINUTE)
        checks = [{"name": "it", "command": ["/bin/that"], "every": "1h"}]
        machine.world.settings = Settings.model_validate({"check": checks})
        assert machine.world.daemon is not None
        machine.world.daemon.request_reload()
        await asyncio.sleep(10)
        assert machine.commands.asked[-1].argv == ("/bin/that",)
        assert machine.sample("it")["latency_ms"] == 5
        await asyncio.sleep(10 * MINUTE)
        assert machine.news() == []

    live(story, {"name": "it", "command": ["/bin/it"], "every": "1h", "timeout": "5m"})


def test_the_status_says_how_many_are_well_and_which_are_not() -> None:
    async def story(machine: Machine) -> None:
        assert machine.world.daemon is not None
        lines = machine.world.daemon.report()["capabilities"]["checks"]
        assert lines == ["checks    1 of 9 well; bad: b0, b1, b2, b3, b4 and 2 more; unknown: slip"]

    bad = [{"name": f"b{number}", "file": "/x"} for number in range(7)]
    slip = {"name": "slip", "vital": "gpu.heat", "over": 90}
    live(story, {"name": "it", "command": ["/bin/it"]}, slip, *bad)


@pytest.mark.parametrize("seconds", [0.5, 7])
def test_every_sets_how_often_it_looks(seconds: float) -> None:
    async def story(machine: Machine) -> None:
        machine.commands.asked.clear()
        await asyncio.sleep(70)
        assert 65 / seconds <= len(machine.commands.asked) <= 75 / seconds

    live(story, {"name": "it", "command": ["/bin/it"], "every": f"{seconds}s"})
