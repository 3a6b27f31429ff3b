"""The watchdog as the whole daemon lives it, in virtual time."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from errno import EAGAIN
from itertools import pairwise
from typing import Any

import pytest

from pulse_adapters.host.guarded_processes import guarded_process
from pulse_adapters.memory.executors import MemoryHost, MemoryRestart
from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    Paused,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopRequested,
    ReloadRequested,
    Resumed,
)
from pulse_core.model.moment import iso
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.projections.incidents import Incidents
from pulse_core.projections.incidents import after as incidents_after
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings import Settings
from tests.simulation.world import RARE, World, simulate

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}
TWO = {"process": [{"name": "worker", "start": ["w"], "depends_on": ["gateway"]}, *ONE["process"]]}
PORT = {"process": [{"name": "gateway", "start": ["gateway"], "tcp": "127.0.0.1:1"}]}
HOUR_US = 3_600_000_000
DAY = 86_400


def starts(world: World, name: str = "gateway") -> int:
    return sum(1 for started, _ in world.host.starts if started == name)


def told_restarts(world: World, name: str = "gateway") -> int:
    """The restarts that status shows."""
    assert world.daemon is not None
    return int({process["name"]: process["restarts"] for process in world.daemon.report()["processes"]}[name])


def states(world: World) -> dict[str, str]:
    assert world.daemon is not None
    return {process["name"]: process["state"] for process in world.daemon.report()["processes"]}


def notices(world: World) -> list[str]:
    told = [json.loads(event.data) for event in world.events("effect")]
    return [
        wish["params"]["title"]
        for wish in told
        if wish["action"] == "notify" and wish["key"] != "notify:daemon"
    ]


def failing(times: int) -> Callable[[Event], Awaitable[None]]:
    """A deed that fails so often and then works."""
    left = iter(range(times))

    async def deed(_event: Event) -> None:
        if next(left, None) is not None:
            raise PulseError("no luck")

    return deed


def test_what_is_not_there_at_the_start_is_started() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert starts(world) == 1
        assert len(world.events("process-up")) == 1

    simulate(story, ONE)


def test_what_goes_on_of_a_process_that_is_taken_out_of_the_settings_is_told() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert world.daemon is not None
        assert world.daemon.report()["unguarded"] == []
        world.host.left["gateway"] = (world.host.starts[0][1],)
        world.settings = Settings()
        await world.ask(ReloadRequested())
        await asyncio.sleep(10)
        assert world.daemon.report()["unguarded"] == [{"name": "gateway", "pids": [101]}]

    simulate(story, ONE)


def test_who_held_the_port_of_one_that_was_taken_out_of_the_settings_is_not_told_when_it_is_back() -> None:
    async def story(world: World) -> None:
        guarded, held = world.settings, "port 80 is held by process 7"
        look = world.host.look

        async def beside_another(
            processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
        ) -> Mapping[str, ProcessObservation]:
            seen = await look(processes, known)
            return {name: one if one.found else one._replace(holder=held) for name, one in seen.items()}

        world.host.look = beside_another  # type: ignore[method-assign]
        await world.start()
        world.settings = Settings.model_validate(RARE)
        await world.ask(Paused())
        world.host.kill("gateway")
        await asyncio.sleep(5)
        assert "port 80 was held by process 7" in world.events("process-died")[-1].data
        await world.ask(ReloadRequested())
        await asyncio.sleep(60)
        world.host.look = look  # type: ignore[method-assign]
        world.settings, deaths = guarded, len(world.events("process-died"))
        await world.ask(ReloadRequested())
        await asyncio.sleep(5)
        (again,) = world.events("process-died")[deaths:]
        assert json.loads(again.data)["evidence"] == "not running"

    simulate(story, {**ONE, **RARE})


def test_what_was_wished_of_a_process_is_not_remembered_once_it_is_guarded_no_more() -> None:
    async def story(world: World) -> None:
        processes = (await world.start()).processes
        await world.ask(Paused())
        for name, action in (("gateway", "restart-process"), ("worker", "stop-process")):
            await world.ask(
                Effect(action=action, key=action, params={"process": name}, reason="by a rule"), action
            )
        assert processes._restarted_for.keys() == {"gateway"}
        assert processes._to_stop == {"worker"}
        world.settings = Settings.model_validate({})
        await world.ask(ReloadRequested())
        await asyncio.sleep(60)
        assert not processes._restarted_for
        assert not processes._to_stop

    simulate(story, TWO)


def test_what_was_wrong_with_a_process_is_over_once_it_is_guarded_no_more() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(60)
        assert (states(world), notices(world)) == ({"gateway": "flapping"}, ["gateway stays down"])
        guarding, world.settings = world.settings, Settings.model_validate(RARE)
        await world.ask(ReloadRequested())
        await asyncio.sleep(10)
        world.host.dying.clear()
        before, world.settings = starts(world), guarding
        await world.ask(ReloadRequested())
        await asyncio.sleep(0.2)
        assert (states(world), starts(world)) == ({"gateway": "up"}, before + 1)
        *_, death = (one.payload for one in world.log.events if isinstance(one.payload, ProcessDied))
        assert (death.pid, death.evidence, death.printed) == (None, "not running", "")
        await asyncio.sleep(DAY)
        assert notices(world) == ["gateway stays down", "no longer watched: gateway stays down"]
        world.host.kill("gateway")
        await asyncio.sleep(1)
        told = incidents_after(Incidents(), world.log.events).at(world.clock.now())
        assert [(one.subject, one.over) for one in told] == [("gateway", True), ("gateway", True)]

    simulate(story, {**ONE, **RARE})


def test_the_first_start_is_no_restart() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        assert (starts(world), told_restarts(world)) == (1, 0)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert (starts(world), told_restarts(world)) == (2, 1)  # at once: there was no restart before it
        world.host.kill("gateway")
        await asyncio.sleep(0.9)
        assert states(world) == {"gateway": "backing-off"}
        await asyncio.sleep(0.2)
        assert (starts(world), told_restarts(world)) == (3, 2)

    simulate(story, ONE)


def test_the_first_start_is_remembered_by_the_next_daemon() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        await world.crash()
        world.checkpoints = MemoryCheckpoints()
        await world.start()
        await asyncio.sleep(1)
        assert (starts(world), told_restarts(world)) == (1, 0)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert (starts(world), told_restarts(world)) == (2, 1)

    simulate(story, ONE)


def test_what_was_up_before_pulse_saw_it_is_restarted_and_not_started() -> None:
    async def story(world: World) -> None:
        world.host.start("gateway")
        await world.start()
        await asyncio.sleep(1)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert (starts(world), told_restarts(world)) == (2, 1)

    simulate(story, ONE)


def test_a_first_start_that_cannot_be_made_is_followed_by_patience() -> None:
    async def story(world: World) -> None:
        world.executors["restart-process"].deed = failing(4)
        await world.start()
        await asyncio.sleep(0.9)
        assert states(world) == {"gateway": "backing-off"}
        await asyncio.sleep(20)
        assert (states(world), starts(world), told_restarts(world)) == ({"gateway": "up"}, 1, 0)

    simulate(story, ONE)


def test_two_that_can_never_be_started_spend_no_start_of_another_one() -> None:
    async def deed(event: Event) -> None:
        if event.subject.startswith("restart-process:hog"):
            raise PulseError("no luck")

    async def story(world: World) -> None:
        world.executors["restart-process"].deed = deed
        await world.start()
        await asyncio.sleep(130)  # the gateway is healthy
        for died in range(1, 4):
            world.host.kill("gateway")
            await asyncio.sleep(5)
            assert starts(world) == 1 + died
        tried = [one.at for one in world.events("effect-executing")]
        assert max(sum(0 <= at - one < 60_000_000 for one in tried) for at in tried) < 70

    often = {"max": 1000, "backoff": "10ms", "backoff_max": "10ms"}
    hogs = [{"name": f"hog{number}", "start": ["hog"], "restart": often} for number in (1, 2)]
    simulate(story, {"process": [*hogs, *ONE["process"]]})


def test_what_never_ran_is_not_said_to_be_restarted() -> None:
    async def story(world: World) -> None:
        is_short = True

        def told() -> tuple[str, str]:
            assert world.daemon is not None
            (one,) = world.daemon.report()["processes"]
            return one["state"], one["why"]

        async def deed(_event: Event) -> None:
            await asyncio.sleep(5)
            if is_short:
                raise PulseError("cannot start 'gateway': no more processes") from BlockingIOError(EAGAIN, "")

        world.executors["restart-process"].deed = deed
        await world.start()
        await asyncio.sleep(2)
        assert told() == ("starting", "its start is under way")
        await asyncio.sleep(3.5)
        state, why = told()
        assert (state, why.partition(":")[0]) == ("waiting", "its start is tried again soon")
        is_short = False
        await asyncio.sleep(30)
        assert told()[0] == "up"

    simulate(story, ONE)


def test_what_the_machine_lacks_is_waited_for_and_charged_to_no_budget() -> None:
    async def story(world: World) -> None:
        is_short = True

        async def deed(_event: Event) -> None:
            if is_short:
                raise PulseError("cannot start 'gateway': no more processes") from BlockingIOError(EAGAIN, "")

        await world.start()
        await asyncio.sleep(200)
        world.executors["restart-process"].deed = deed
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert world.daemon is not None
        (told,) = world.daemon.report()["processes"]
        words = "its restart is tried again soon: 4 attempts failed, the last one: cannot start 'gateway': no more processes"
        assert (told["state"], told["why"]) == ("restarting", words)
        assert notices(world) == []
        await asyncio.sleep(3_600)
        assert notices(world) == ["gateway stays down"]
        is_short = False
        await asyncio.sleep(5.1)
        assert (states(world), starts(world), told_restarts(world)) == ({"gateway": "up"}, 2, 1)
        world.host.kill("gateway")
        await asyncio.sleep(1.1)
        assert (states(world), starts(world)) == ({"gateway": "up"}, 3)
        await asyncio.sleep(1_000)
        assert notices(world) == ["gateway stays down", "resolved: gateway stays down"]

    simulate(story, ONE)


def test_who_is_not_wanted_any_more_is_not_started_when_the_machine_has_what_it_lacked() -> None:
    async def story(world: World) -> None:
        async def deed(_event: Event) -> None:
            raise BlockingIOError(EAGAIN, "no more threads")

        await world.start()
        await asyncio.sleep(200)
        world.executors["restart-process"].deed = deed
        world.host.kill("gateway")
        await asyncio.sleep(61)
        tried = len(world.events("effect-executing"))
        await world.ask(ProcessStopRequested(), "gateway")
        await asyncio.sleep(0.01)
        assert len(world.events("effect-cancelled")) == 1
        world.executors["restart-process"].deed = failing(0)
        await asyncio.sleep(600)
        assert (states(world), starts(world)) == ({"gateway": "stopped"}, 1)
        assert len(world.events("effect-executing")) == tried

    simulate(story, ONE)


@dataclass
class RestartsOfGuarded(MemoryRestart):
    """Restarts what the settings of a world guard, and nothing else."""

    world: World | None = None

    def check(self, params: Any) -> None:
        """As the real one."""
        assert self.world is not None
        guarded_process(self.world.settings, params.process)


def test_who_is_not_guarded_any_more_is_not_started_when_the_machine_has_what_it_lacked() -> None:
    async def story(world: World) -> None:
        async def deed(_event: Event) -> None:
            raise BlockingIOError(EAGAIN, "no more threads")

        restarts = world.executors["restart-process"] = RestartsOfGuarded(host=world.host, world=world)
        await world.start()
        await asyncio.sleep(200)
        restarts.deed = deed
        world.host.kill("gateway")
        await asyncio.sleep(61)
        world.settings = Settings.model_validate({"process": [{"name": "other", "start": ["other"]}]})
        await world.ask(ReloadRequested())
        await asyncio.sleep(0.01)
        (over,) = world.events("effect-cancelled")
        assert "no process 'gateway' in config.toml" in over.data
        restarts.deed = failing(0)
        await asyncio.sleep(600)
        assert (starts(world), starts(world, "other")) == (1, 1)

    simulate(story, ONE)


def test_a_killed_process_is_back_within_milliseconds() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert starts(world) == 2
        assert "gateway" in world.host.processes

    simulate(story, ONE)


def test_backoff_starts_with_the_second_restart_and_doubles() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        for seconds, tried in ((0.5, 1), (0.9, 2), (1.8, 3), (3.9, 4)):
            await asyncio.sleep(seconds)
            assert starts(world) == tried

    simulate(story, ONE)


def test_a_process_that_always_dies_gets_one_notice_and_few_tries() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(60)
        assert states(world) == {"gateway": "flapping"}
        assert starts(world) == 1 + 5
        assert told_restarts(world) == 5
        assert notices(world) == ["gateway stays down"]
        await asyncio.sleep(DAY)
        assert notices(world) == ["gateway stays down", *["still: gateway stays down"] * 6]
        assert 20 < starts(world) < 40

    simulate(story, {**ONE, **RARE})


def test_tries_of_a_flapping_process_grow_apart() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(6 * 3600)

    world = simulate(story, {**ONE, **RARE})
    tries = [event.at for event in world.events("effect", subject="restart-process:gateway")]
    gaps = [round((later - earlier) / 1e6) for earlier, later in pairwise(tries[5:])]
    assert gaps == sorted(gaps)
    assert max(gaps) < 1.1 * 3_600
    assert gaps[0] >= 300


def test_a_flapping_process_that_recovers_is_forgiven_by_itself() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(60)
        world.host.dying.clear()
        await asyncio.sleep(1_200)
        assert states(world) == {"gateway": "up"}
        before = starts(world)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        assert starts(world) == before + 1

    simulate(story, ONE)


def test_a_process_that_always_dies_a_little_after_it_counts_as_healthy_is_flapping_and_told_once() -> None:
    async def story(world: World) -> None:
        await world.start()
        for _ in range(60):
            await asyncio.sleep(2.5)
            world.host.kill("gateway")
        assert starts(world) == 1 + 5
        assert states(world) == {"gateway": "flapping"}
        assert world.daemon is not None
        assert world.daemon.report()["processes"][0]["why"].startswith("dead after 5 restarts: ")
        for _ in range(100):
            await asyncio.sleep(60)
            world.host.kill("gateway")
        assert [title for title in notices(world) if "still" not in title] == ["gateway stays down"]
        await asyncio.sleep(4_000)
        assert notices(world)[-1] == "resolved: gateway stays down"

    process = {"name": "gateway", "start": ["g"], "restart": {"healthy_after": "2s", "backoff": "0s"}}
    simulate(story, {"process": [process]})


def test_a_second_episode_of_flapping_is_told_again() -> None:
    async def story(world: World) -> None:
        await world.start()
        for _ in range(2):
            world.host.dying.add("gateway")
            world.host.kill("gateway")
            await asyncio.sleep(60)
            world.host.dying.clear()
            await asyncio.sleep(1_000)
        assert notices(world) == ["gateway stays down", "resolved: gateway stays down"] * 2

    simulate(story, ONE)


def test_no_budget_means_tell_and_leave_it() -> None:
    gateway = {"name": "gateway", "start": ["g"], "restart": {"max": 0}}
    settings = {"process": [gateway], **RARE}

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(DAY / 2)
        assert starts(world) == 0
        assert states(world) == {"gateway": "down"}  # flapping is what ran and died
        assert notices(world) == ["gateway is down", *["still: gateway is down"] * 2]

    simulate(story, settings)


def test_a_dependent_waits_until_what_it_needs_is_up() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(100)
        assert starts(world, "worker") == 0
        assert states(world)["worker"] == "waiting"
        world.host.dying.clear()
        await asyncio.sleep(400)
        assert starts(world, "worker") == 1

    simulate(story, TWO)


def test_a_dependent_that_dies_a_moment_before_what_it_needs_waits_for_it() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        world.host.dying.add("gateway")
        world.host.kill("worker")
        await asyncio.sleep(0.02)
        world.host.kill("gateway")
        await asyncio.sleep(20)
        assert starts(world, "worker") == 1
        assert states(world)["worker"] == "waiting"

    simulate(story, TWO)


def test_who_matches_beside_it_is_told_by_the_status() -> None:
    async def story(world: World) -> None:
        world.host.beside["gateway"] = "2 others match: 7, 8"
        await world.start()
        await asyncio.sleep(40)
        assert world.daemon is not None
        assert "2 others match: 7, 8" in world.daemon.report()["processes"][0]["why"]
        world.host.beside["gateway"] = "it was started otherwise"
        await asyncio.sleep(2)
        assert "otherwise" not in world.daemon.report()["processes"][0]["why"]
        world.settings = Settings.model_validate({"process": [{**ONE["process"][0], "cwd": "/"}]})
        world.daemon.request_reload()  # not only a minute later
        await asyncio.sleep(15)
        assert "otherwise" in world.daemon.report()["processes"][0]["why"]

    simulate(story, ONE)


def test_a_living_dependent_is_left_alone() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        world.host.kill("gateway")
        await asyncio.sleep(300)
        assert (starts(world, "gateway"), starts(world, "worker")) == (2, 1)

    simulate(story, TWO)


def test_what_a_person_stops_stays_down_until_it_expires() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        await world.ask(ProcessStopRequested(expires_us=HOUR_US), "gateway")
        await asyncio.sleep(1)
        assert world.host.processes == {}
        assert states(world) == {"gateway": "stopped"}
        await asyncio.sleep(3500)
        assert starts(world) == 1
        await asyncio.sleep(110)
        assert starts(world) == 2

    simulate(story, ONE)


def test_the_start_after_a_stop_that_has_ended_by_itself_is_charged_to_no_budget() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        await world.ask(ProcessStopRequested(expires_us=5_000_000), "gateway")
        await asyncio.sleep(6)
        assert (starts(world), states(world)) == (2, {"gateway": "up"})
        world.host.kill("gateway")
        await asyncio.sleep(0.1)
        reason = json.loads(world.events("effect")[-1].data)["reason"]
        assert (starts(world), states(world)) == (3, {"gateway": "up"}), "the first death is answered at once"
        assert "after 1 restart" not in reason
        world.host.kill("gateway")
        await asyncio.sleep(0.1)
        assert states(world) == {"gateway": "backing-off"}, "only the first start is charged to no budget"

    simulate(story, ONE)


def test_a_commanded_start_ends_a_stop_at_once() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        await world.ask(ProcessStopRequested(expires_us=HOUR_US), "gateway")
        await asyncio.sleep(10)
        await world.ask(ProcessStartRequested(), "gateway")
        await asyncio.sleep(0.1)
        assert states(world) == {"gateway": "up"}

    simulate(story, ONE)


def test_a_person_has_processes_restarted_those_first_that_others_depend_on() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        before = dict(world.host.processes)
        for name in ("gateway", "worker"):
            await world.ask(ProcessRestartRequested(why="new model"), name)
        await asyncio.sleep(1)
        assert [name for name, _ in world.host.starts[2:]] == ["gateway", "worker"]
        assert world.host.processes.keys() == before.keys()
        up = world.events("process-up", subject="gateway")[-1]
        wishes = [(one, json.loads(one.data)) for one in world.events("effect")[2:]]
        assert [wish["params"] for _, wish in wishes] == [{"process": "gateway"}, {"process": "worker"}]
        assert "to be restarted: person asked for it (new model)" in wishes[0][1]["reason"]
        assert up.seq < wishes[1][0].seq
        assert world.daemon is not None
        assert world.daemon.parts.view().processes["gateway"].charged == ()

    simulate(story, TWO)


def test_what_a_person_wants_restarted_is_restarted_after_a_crash_and_when_a_pause_is_over() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        await world.ask(ProcessStopRequested(expires_us=HOUR_US), "gateway")
        await asyncio.sleep(10)
        await world.ask(Paused())
        await world.ask(ProcessRestartRequested(), "gateway")
        await asyncio.sleep(1)
        assert starts(world) == 1
        await world.crash()
        await world.start()
        await world.ask(Resumed())
        await asyncio.sleep(1)
        assert (starts(world), states(world)) == (2, {"gateway": "up"})

    simulate(story, ONE)


def test_a_unit_stopped_on_purpose_is_not_fought() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        world.host.intended.add("gateway")
        world.host.kill("gateway")
        await asyncio.sleep(3600)
        assert starts(world) == 1
        assert len(world.events("process-stopped")) == 1
        world.host.start("gateway")
        await asyncio.sleep(10)
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert states(world) == {"gateway": "up"}

    simulate(story, ONE)


def test_paused_pulse_watches_and_does_not_act() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        await world.ask(Paused(why="maintenance"))
        world.host.kill("gateway")
        await asyncio.sleep(100)
        assert starts(world) == 1
        assert world.events("process-died")[-1].subject == "gateway"
        await world.ask(Resumed())
        await asyncio.sleep(0.1)
        assert starts(world) == 2

    simulate(story, ONE)


def test_one_failed_probe_kills_nothing_and_three_in_a_row_do() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        body = world.host.processes["gateway"]
        body.answering = False
        asked = len(world.host.asked)
        while len(world.host.asked) == asked:
            await asyncio.sleep(0.1)
        body.answering = True
        await asyncio.sleep(60)
        assert starts(world) == 1
        body.answering = False
        hung = world.clock.now().at
        await asyncio.sleep(10)
        assert starts(world) == 2
        died = world.events("process-died")[-1]
        failing = json.loads(died.data)["failing"]
        assert hung < failing < died.at, "it served until the first of them failed"
        await asyncio.sleep(10)
        (incident,) = incidents_after(Incidents(), world.log.events).at(world.clock.now())
        assert incident.began.at == failing
        assert incident.wrong_us == world.events("process-up")[-1].at - failing

    simulate(story, PORT)


def test_a_restart_of_pulse_neither_forgets_nor_repeats() -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(60)
        before = starts(world)
        for _ in range(10):
            await world.crash()
            await world.start()
            await asyncio.sleep(1)
        assert starts(world) == before
        assert states(world) == {"gateway": "flapping"}
        assert notices(world) == ["gateway stays down"]

    simulate(story, ONE)


def test_a_death_while_pulse_was_down_is_noticed_at_its_start() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        await world.end()
        world.host.kill("gateway")
        await asyncio.sleep(300)
        await world.start()
        await asyncio.sleep(0.1)
        assert starts(world) == 2

    simulate(story, ONE)


def test_a_living_process_is_not_touched_by_a_restart_of_pulse() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        await world.end()
        await world.start()
        await asyncio.sleep(300)
        assert starts(world) == 1
        assert len(world.events("process-up")) == 1

    simulate(story, ONE)


def test_a_reboot_brings_everything_back_at_once() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        await world.crash()
        world.host.processes.clear()
        world.clock.reboot()
        await world.start()
        await asyncio.sleep(0.2)
        assert states(world) == {"worker": "up", "gateway": "up"}

    simulate(story, TWO)


def test_of_a_hundred_deaths_at_once_each_first_start_is_immediate_and_the_others_stay_within_a_budget() -> (
    None
):
    many = [{"name": f"p{number}", "start": ["p"]} for number in range(100)]

    async def story(world: World) -> None:
        world.host.dying.update(f"p{number}" for number in range(100))
        await world.start()
        await asyncio.sleep(1)
        assert len(world.host.starts) == 100
        await asyncio.sleep(57)
        assert len(world.host.starts) == 160
        assert notices(world)[0] == "Pulse holds back starts of dead processes"
        world.host.dying.clear()
        await asyncio.sleep(62)
        assert len(world.host.starts) == 260

    simulate(story, {"process": many})


def test_a_hundred_deaths_are_answered_together_when_there_is_no_limit() -> None:
    many = [{"name": f"p{number}", "start": ["p"]} for number in range(100)]

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(200)
        for number in range(100):
            world.host.kill(f"p{number}")
        await asyncio.sleep(1)
        assert len(world.host.starts) == 200

    simulate(story, {"process": many, "budget": {"actions_per_minute": 0}})


@pytest.mark.parametrize("jump", [-10 * 365 * DAY, -3600, 3600, 10 * 365 * DAY])
def test_a_clock_that_jumps_causes_neither_storm_nor_stall(jump: int) -> None:
    async def story(world: World) -> None:
        world.host.dying.add("gateway")
        await world.start()
        await asyncio.sleep(60)
        world.clock.jump(jump * 1_000_000)
        await asyncio.sleep(60)
        assert starts(world) == 1 + 5
        world.host.dying.clear()
        await asyncio.sleep(1200)
        assert states(world) == {"gateway": "up"}
        world.host.kill("gateway")
        await asyncio.sleep(0.1)
        assert states(world) == {"gateway": "up"}

    simulate(story, ONE)


@pytest.mark.parametrize(
    ("late", "stood_still"), [(0, 0), (80, 0), (0, 8)], ids=["looked", "looked late", "stood still"]
)
def test_a_death_while_the_daemon_stood_still_says_between_when(late: int, stood_still: int) -> None:
    """As one that is suspended: neither a look nor the kernel's notice of the death came about."""

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(12)
        world.host.kill("gateway")
        time = asyncio.get_running_loop().time
        time.__self__._now += late  # type: ignore[attr-defined]  # of the virtual loop
        world.clock._booted -= stood_still  # which the time of the loop leaves out
        world.clock.jump(stood_still * 1_000_000)
        await asyncio.sleep(1)
        died = json.loads(world.events("process-died", subject="gateway")[-1].data)
        told = ("while nobody looked" in died["evidence"], bool(died.get("last_seen")))
        assert told == (late + stood_still > 0, late + stood_still > 0), died
        world.host.kill("gateway")
        await asyncio.sleep(1)
        assert "nobody looked" not in world.events("process-died", subject="gateway")[-1].data

    simulate(story, ONE)


@pytest.mark.parametrize(
    "restarted", [0, 20, 40], ids=["one daemon", "put back by a new one", "put back before"]
)
def test_a_death_while_it_was_not_in_the_settings_says_between_when(restarted: int) -> None:
    """restarted: after how many seconds the daemon was: before it was put back, or after that, while it lived again."""

    async def story(world: World) -> None:
        async def put(settings: dict[str, Any]) -> None:
            assert world.daemon is not None
            world.settings = Settings.model_validate(settings)
            world.daemon.request_reload()
            await asyncio.sleep(1)

        await world.start()
        await asyncio.sleep(12)
        await put({})
        world.host.kill("gateway")
        await asyncio.sleep(30)
        if restarted == 20:
            await world.end()
            world.settings = Settings.model_validate(ONE)
            await world.start()
            await asyncio.sleep(1)
        else:
            await put(ONE)
        (out,) = (event for event in world.events("settings-loaded") if '"gone"' in event.data)
        died = json.loads(world.events("process-died", subject="gateway")[-1].data)
        assert died["last_seen"] == out.at
        assert died["evidence"].endswith("while it was not guarded")
        if restarted == 40:
            await world.end()
            await asyncio.sleep(10)
            world.host.kill("gateway")
            await world.start()
            await asyncio.sleep(1)
            died = json.loads(world.events("process-died", subject="gateway")[-1].data)
            assert died["evidence"].endswith("while no daemon ran")
            assert died["last_seen"] > out.at
            await asyncio.sleep(4)
        world.host.kill("gateway")
        await asyncio.sleep(3)
        assert "last_seen" not in world.events("process-died", subject="gateway")[-1].data

    simulate(story, ONE)


def test_a_process_added_by_a_reload_is_started_without_a_restart_of_pulse() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(10)
        world.settings = Settings.model_validate(TWO)
        daemon.request_reload()
        await asyncio.sleep(0.2)
        assert states(world) == {"worker": "up", "gateway": "up"}
        assert len(world.events("daemon-started")) == 1

    simulate(story, ONE)


def test_many_reloads_are_one_a_second_and_each_request_is_answered() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10.5)
        asked = [await world.ask(ReloadRequested()) for _ in range(50)]
        await asyncio.sleep(5)
        answers = {event.cause for event in world.events("settings-loaded")}
        assert {event.id for event in asked} <= answers
        assert world.service_manager.told.count("reloading") <= 2

    simulate(story, ONE)


def test_a_death_does_not_wait_for_the_search_for_others_that_match() -> None:
    async def story(world: World) -> None:
        async def search(
            processes: Sequence[ProcessSettings], mains: Mapping[str, ProcessId | None]
        ) -> Mapping[str, str]:
            searching.set()
            await asyncio.sleep(5)
            return {"gateway": "2 others match: 7, 8"}

        await world.start()
        searching, world.host.others = asyncio.Event(), search  # type: ignore[method-assign]
        await searching.wait()
        world.host.kill("gateway")
        await asyncio.sleep(0.05)
        assert (states(world), starts(world)) == ({"gateway": "up"}, 2)
        await asyncio.sleep(100)
        assert world.daemon is not None
        assert "2 others match" in world.daemon.report()["processes"][0]["why"]

    simulate(story, ONE)


def test_whatever_is_started_and_ends_leftovers_are_searched_for_twice_a_second() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(10)
        leftovers, searched = world.host.leftovers, list[float]()

        def counted(mains: Mapping[str, ProcessId | None]) -> Mapping[str, tuple[ProcessId, ...]]:
            searched.append(asyncio.get_running_loop().time())
            return leftovers(mains)

        world.host.leftovers = counted  # type: ignore[method-assign]
        for _ in range(25):
            world.host.kill("gateway")
            last = asyncio.get_running_loop().time()
            await asyncio.sleep(0.2)
        assert starts(world) > 20
        assert 8 <= len(searched) <= 12
        await asyncio.sleep(0.6)
        assert last < searched[-1] < last + 0.6

    often = {"max": 1000, "within": "10m", "backoff": "0s", "healthy_after": "0s", "grace": "0s"}
    simulate(story, {"process": [{**ONE["process"][0], "restart": often}]})


def test_a_manager_at_work_has_its_grace_and_hides_no_death() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(300)
        world.host.busy.add("gateway")
        world.host.kill("gateway")
        await asyncio.sleep(5)
        assert world.events("process-died")[-1].subject == "gateway"
        assert (states(world), starts(world)) == ({"gateway": "starting"}, 1)
        await asyncio.sleep(10)
        assert starts(world) == 2

    simulate(story, ONE)


class SlowEyes(MemoryHost):
    """A machine that is looked at for so many seconds; what is seen is what was there at first."""

    seconds = 0.0

    async def look(self, *what: Any) -> Mapping[str, ProcessObservation]:
        sights = await super().look(*what)
        await asyncio.sleep(self.seconds)
        return sights


class Launchers(MemoryHost):
    """A machine on which nobody knows at first whether what lives is the process itself."""

    launching = True

    async def look(self, *what: Any) -> Mapping[str, ProcessObservation]:
        sights = await super().look(*what)
        return {
            name: sight._replace(busy=self.launching and bool(sight.found)) for name, sight in sights.items()
        }


def test_what_has_time_to_come_up_is_looked_at_closely_until_it_is_known_to_be_it() -> None:
    async def story(world: World) -> None:
        world.host = host = Launchers()
        world.executors["restart-process"] = MemoryRestart(host=host)
        host.launching = False
        await world.start()
        await asyncio.sleep(100)
        host.launching = True
        host.kill("gateway")
        await asyncio.sleep(2.5)
        assert (states(world), starts(world)) == ({"gateway": "starting"}, 2)
        host.launching = False
        await asyncio.sleep(0.2)
        assert states(world) == {"gateway": "up"}

    simulate(story, ONE)


class SlowRestart(MemoryRestart):
    """A restart with a while between the end of the old one and the start of the new one."""

    async def outcome(self, effect: Effect) -> dict[str, Json]:
        self.host.end("gateway")
        await asyncio.sleep(self.seconds)
        return await super().outcome(effect)


@pytest.mark.parametrize(("restart_s", "look_s"), [(0.0, 0.0), (0.01, 0.0), (0.01, 0.03)])
def test_what_is_restarted_by_hand_while_it_lives_is_looked_at_closely_until_it_answers(
    restart_s: float, look_s: float
) -> None:
    guarded = {**PORT["process"][0], "restart": {"grace": "10s"}}

    async def story(world: World) -> None:
        eyes = SlowEyes()
        world.host = eyes
        world.executors["restart-process"] = SlowRestart(host=eyes, seconds=restart_s)
        await world.start()
        await asyncio.sleep(100)
        eyes.unresponsive.add("gateway")
        eyes.seconds = look_s
        wish = Effect(action="restart-process", key="by-hand", params={"process": "gateway"})
        await world.ask(wish, "by-hand")
        await asyncio.sleep(1)
        assert [event.kind for event in world.events("process-died", "process-up")][-1] == "process-died"
        eyes.unresponsive.clear()
        eyes.processes["gateway"].answering = True
        await asyncio.sleep(0.2)
        assert states(world) == {"gateway": "up"}
        await asyncio.sleep(120)
        assert starts(world) == 2

    simulate(story, {"watch": {"process_interval": "40s"}, "process": [guarded]})


class LateEyes(MemoryHost):
    """A machine that is looked at for so many seconds; what is seen is what is there at last."""

    seconds = 0.0

    async def look(self, *what: Any) -> Mapping[str, ProcessObservation]:
        await asyncio.sleep(self.seconds)
        return await super().look(*what)


def intentions(world: World) -> list[bool]:
    """Of each death but that at the first look, whether it was intended."""
    return [json.loads(event.data).get("intended", False) for event in world.events("process-died")[1:]]


@pytest.mark.parametrize("look_s", [0.0, 0.003, 0.01, 0.05])
def test_a_death_by_a_restart_that_was_acked_before_the_look_returned_was_intended(look_s: float) -> None:
    async def story(world: World) -> None:
        eyes = world.host = LateEyes()
        world.executors["restart-process"] = SlowRestart(host=eyes, seconds=0.002)
        await world.start()
        eyes.seconds = look_s
        for _ in range(5):
            await asyncio.sleep(7.3)
            await world.ask(ProcessRestartRequested(), "gateway")
        await asyncio.sleep(10)
        assert starts(world) == 6
        assert all(intentions(world))

    simulate(story, ONE)


def test_who_dies_by_itself_while_a_restart_is_under_way_was_not_ended_by_it() -> None:
    class LateRestart(MemoryRestart):
        async def outcome(self, effect: Effect) -> dict[str, Json]:
            await asyncio.sleep(1)
            return await super().outcome(effect)

    async def story(world: World) -> None:
        world.executors["restart-process"] = LateRestart(host=world.host)
        await world.start()
        await asyncio.sleep(100)
        await world.ask(ProcessRestartRequested(), "gateway")
        await asyncio.sleep(0.5)
        world.host.kill("gateway")
        await asyncio.sleep(10)
        assert intentions(world) == [False]

    simulate(story, ONE)


def test_what_an_earlier_daemon_was_restarting_when_it_was_killed_was_ended_by_it() -> None:
    class CutRestart(MemoryRestart):
        async def outcome(self, effect: Effect) -> dict[str, Json]:
            if not effect.params.get("if_dead"):
                self.host.end("gateway")
                await asyncio.sleep(3600)
            return await super().outcome(effect)

    class BlindOnce(MemoryHost):
        def _report_death(self, found: ProcessId) -> None:
            self.ended.clear()

    async def story(world: World) -> None:
        eyes = world.host = BlindOnce()
        world.executors["restart-process"] = CutRestart(host=eyes)
        await world.start()
        await asyncio.sleep(10.001)
        await world.ask(ProcessRestartRequested(), "gateway")
        await asyncio.sleep(0.1)
        await world.crash()
        await world.start()
        await asyncio.sleep(1)
        assert intentions(world) == [True]

    simulate(story, ONE)


def test_a_death_has_what_the_process_printed_last_and_so_has_the_notice_that_it_stays_down() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        world.host.printed["gateway"] = "no config\nresolved: all is well"
        for _ in range(8):
            world.host.kill("gateway")
            await asyncio.sleep(40)
        died = [json.loads(event.data) for event in world.events("process-died")]
        assert len(died) > 5
        assert {one["printed"] for one in died[1:]} == {"no config\nresolved: all is well"}
        told = [json.loads(event.data) for event in world.events("effect")]
        text = next(one["params"]["text"] for one in told if one["key"] == "notify:flapping:gateway")
        assert text.endswith("\nIt printed last:\n> no config\n> resolved: all is well")

    simulate(story, ONE)


def test_what_pulse_has_not_started_has_printed_nothing_that_is_known() -> None:
    async def story(world: World) -> None:
        world.host.printed["gateway"] = "of another life"
        world.host.start("gateway")
        await world.start()
        await asyncio.sleep(1)
        world.host.kill("gateway")
        await asyncio.sleep(1)
        (died,) = world.events("process-died")
        assert "printed" not in json.loads(died.data)

    simulate(story, ONE)


class OddlyMarkedHost(MemoryHost):
    """A machine on which a process that nobody here has started says what it likes of its output."""

    def unlogged(self, found: ProcessId) -> str:
        return "\udcff" * 100_000


def test_what_a_process_says_of_its_output_keeps_no_look_from_being_told() -> None:
    """It is in its environment, which any program chooses for what it starts."""

    async def story(world: World) -> None:
        for name in ("gateway", "worker"):
            world.host.start(name)
        await world.start()
        await asyncio.sleep(100)
        assert {one.subject for one in world.events("process-up")} == {"gateway", "worker"}
        assert max(len(one.data) for one in world.events("process-up")) < 10_000
        world.host.kill("worker")
        await asyncio.sleep(0.1)
        assert starts(world, "worker") == 2

    simulate(
        story,
        {"process": [{"name": name, "start": [name]} for name in ("gateway", "worker")]},
        host=OddlyMarkedHost(),
    )


def test_what_waits_for_one_of_two_has_waited_for_it_since_both_were_down() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        world.host.dying.update(("gateway", "db"))
        for name in ("gateway", "db", "worker"):
            world.host.kill(name)
        began = world.clock.now().at
        await asyncio.sleep(20)
        world.host.dying.remove("db")
        await asyncio.sleep(600)
        (held,) = [one["held"] for one in daemon.report()["processes"] if one["name"] == "worker"]
        assert held
        assert held["by"] == "gateway, on which it depends"
        assert held["since"] < iso(began + 5_000_000)
        told = [
            json.loads(event.data)["held_by"] for event in world.events("restart-delayed", subject="worker")
        ]
        assert "gateway, db, on which it depends" in told

    db = {"name": "db", "start": ["db"]}
    worker = {**TWO["process"][0], "depends_on": ["gateway", "db"]}
    simulate(story, {"process": [worker, db, *ONE["process"]]})


def test_what_holds_a_restart_back_is_told_while_it_lasts_and_recorded_when_another_takes_over() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(300)
        await world.ask(Paused())
        world.host.kill("worker")
        world.host.kill("gateway")
        await asyncio.sleep(40)
        held = [one["held"] for one in daemon.report()["processes"]]
        assert [one and one["by"] for one in held] == ["a pause of person", "a pause of person"]
        world.host.dying.add("gateway")
        await world.ask(Resumed())
        await asyncio.sleep(3)
        world.host.dying.clear()
        await asyncio.sleep(60)
        assert not any(one["held"] for one in daemon.report()["processes"])
        told = [(event.subject, json.loads(event.data)) for event in world.events("restart-delayed")]
        first = [(name, round(one["held_us"] / 1e6)) for name, one in told if one.get("lasts")][:2]
        assert first == [("worker", 1), ("gateway", 1)]  # so that a kill of the daemon loses no more
        ended = [
            (name, one["held_by"], round(one["held_us"] / 1e6)) for name, one in told if "lasts" not in one
        ]
        assert ended == [
            ("worker", "a pause of person", 40),
            ("gateway", "a pause of person", 40),
            ("gateway", "the pause between two restarts", 1),
            ("gateway", "the pause between two restarts", 2),
            ("worker", "gateway, on which it depends", 3),
        ]

    simulate(story, TWO)


def test_what_holds_a_restart_back_when_a_daemon_begins_may_have_done_so_earlier() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(60)
        await world.ask(Paused())
        world.host.kill("gateway")
        await asyncio.sleep(60)
        (held,) = [one["held"] for one in daemon.report()["processes"]]
        assert held
        assert not held["or_earlier"]
        await world.crash()
        daemon = await world.start()
        await asyncio.sleep(60)
        (held,) = [one["held"] for one in daemon.report()["processes"]]
        assert held
        assert held["or_earlier"]
        await world.ask(Resumed())
        await asyncio.sleep(60)
        await world.ask(Paused())
        world.host.kill("gateway")
        await asyncio.sleep(1)
        (held,) = [one["held"] for one in daemon.report()["processes"]]
        assert held
        assert not held["or_earlier"]

    simulate(story, ONE)


def test_what_ends_as_it_has_lasted_for_a_second_is_not_told_to_last() -> None:
    async def story(world: World) -> None:
        await world.start()
        for _ in range(3):
            await asyncio.sleep(10)
            world.host.kill("gateway")
        await asyncio.sleep(10)
        told = [
            (row.kind, json.loads(row.data).get("lasts", False))
            for row in world.events()
            if row.kind == "restart-delayed" or row.subject == "restart-process:gateway"
        ]
        wish, ended, lasts = ("effect", False), ("restart-delayed", False), ("restart-delayed", True)
        assert told == [wish, wish, wish, ended, lasts, wish, ended], (
            "the pauses are of one second and of two"
        )

    simulate(story, ONE)


def test_who_depends_on_one_that_is_dead_though_that_is_not_recorded_yet_waits_for_it() -> None:
    """The kernel knows of a death before the log does: as when twenty are killed on a machine that is busy."""

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        world.host.kill("worker")
        await asyncio.sleep(0.03)
        gateway = world.host.processes.pop("gateway").found  # nobody has heard of it
        await asyncio.sleep(0.1)
        assert (starts(world), starts(world, "worker")) == (1, 1)
        wished = [event.subject for event in world.events("effect")]
        world.host._report_death(gateway)
        await asyncio.sleep(0.1)
        assert [name for name, _ in world.host.starts[2:]] == ["gateway", "worker"]
        assert wished == [
            "restart-process:gateway",
            "restart-process:worker",
        ]  # what waits is charged to no budget
        assert world.events("effect-cancelled", "effect-failed") == []

    simulate(story, TWO)


def test_a_start_that_waits_for_a_slot_is_not_begun_while_what_it_depends_on_is_dead_in_fact() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(1)
        world.executors["restart-process"].seconds = 0.05
        world.host.kill("other")
        world.host.kill("worker")
        await asyncio.sleep(0.06)
        assert world.daemon is not None
        assert [one.phase.value for one in world.daemon.parts.view().effects.open.values()] == [
            "executing",
            "pending",
        ]
        gateway = world.host.processes.pop("gateway").found
        await asyncio.sleep(0.1)
        assert starts(world, "worker") == 1
        world.host._report_death(gateway)
        await asyncio.sleep(5)
        assert [name for name, _ in world.host.starts[3:]] == ["other", "gateway", "worker"]

    other = {"name": "other", "start": ["o"], "depends_on": ["gateway"]}
    simulate(story, {"process": [other, *TWO["process"]], "daemon": {"concurrency": 1}})


def test_a_death_is_not_told_by_the_limit_of_a_restart_that_is_long_over() -> None:
    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(60)
        limit = {"process": "gateway", "for_condition": "usage:gateway:memory"}
        wish = Effect(action="restart-process", key="restart", params=limit, reason="it takes 2 GiB")
        await world.ask(wish, wish.key)
        await asyncio.sleep(600)
        stop = Effect(action="stop-process", key="stop", params={"process": "gateway"}, reason="by a rule")
        await world.ask(stop, stop.key)
        await asyncio.sleep(60)
        deaths = [json.loads(event.data) for event in world.events("process-died")]
        first, second = [died["evidence"] for died in deaths if died["pid"]]
        assert "; it takes 2 GiB; Pulse ended it to restart it" in first
        assert "2 GiB" not in second
        assert second.endswith("; Pulse ended it to stop it")

    simulate(story, ONE)
