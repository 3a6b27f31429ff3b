"""Agents as the whole daemon lives with them, in virtual time: assigned, begun, watched, bounded, cleaned up after."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from pulse_core.agents.limits import RunSample
from pulse_core.agents.run_scope import DEEPEST, MOST_PARTS, RunScope
from pulse_core.agents.tools import RunAnswer
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import Role
from pulse_core.model.verdict import Verdict
from pulse_core.ports.host import ProcessId
from pulse_core.ports.programs import OrphanProgram
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.stats import STATS
from pulse_core.tasks.task import Status
from tests.long_form import sampled
from tests.simulation.agent_scene import FOURTH, ONE, OTHER, THIRD, AgentScene
from tests.simulation.world import RARE, RARE_LOOKS, World, simulate

ADA: dict[str, Any] = {"name": "ada", "command": ["ada"]}
QUIET: dict[str, Any] = {"daemon": {"tick_ms": 60_000}}


def told(story: Callable[[AgentScene], Awaitable[None]], *agents: dict[str, Any], **settings: Any) -> World:
    async def whole(world: World) -> None:
        await story(AgentScene(world))

    return simulate(whole, {**QUIET, **RARE_LOOKS, "agent": list(agents or (ADA,)), **settings})


def kinds(scene: AgentScene, *without: str) -> list[str]:
    """What happened to the first task and its runs, in its order."""
    return [
        event.kind
        for event in scene.world.events(subject=ONE)
        if event.kind.startswith(("task-", "agent-", "workspace-")) and event.kind not in without
    ]


def test_a_task_is_assigned_done_and_closed_and_everything_is_cleaned_up() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin(prompt="all of it")
        await asyncio.sleep(1)
        assert scene.task().status is Status.EXECUTING
        (started,) = scene.programs.started
        assert started[1].env["PULSE_TOKEN"] == str(scene.task().token)
        run = scene.finish(answer=RunAnswer(text="done", usage={"turns": 3}))
        await asyncio.sleep(1)
        assert scene.task().status is Status.CLOSED
        assert (scene.task().result, scene.task().data["turns"]) == ("done", 3)
        assert (scene.runs.runs, scene.runs.worktrees) == ({}, {})
        assert (scene.files.cleaned, scene.files.removed) == ([run], [f"/work/{ONE}"])
        assert kinds(scene) == [
            "task-created", "task-assigned", "task-executing", "agent-run-started", "workspace-made",
            "agent-run-ended", "task-acked", "task-closed", "agent-run-cleaned", "workspace-removed",
        ]  # fmt: skip
        (printed,) = scene.world.events("agent-run-printed", subject=run)
        assert json.loads(printed.data) == {"text": f"what {ONE} printed"}
        why = json.loads(scene.world.events("task-assigned")[0].data)["why"]
        assert why == "ada has 0 tasks, and may have 1; closed 0 and failed 0"

    told(story)


def test_from_task_to_program_it_takes_no_time_of_its_own() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        created = scene.world.events("task-created")[0].moment
        await asyncio.sleep(1)
        assert scene.run.moment.since(created) < 15_000

    told(story)


def test_a_failed_attempt_is_tried_again_until_a_person_has_to_decide() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for pause in (60, 120):
            await asyncio.sleep(1)
            scene.finish(3, RunAnswer(error="no disk"))
            await asyncio.sleep(pause - 5)
            assert (scene.task().status, scene.runs.live) == (Status.PENDING, ())
            assert scene.task().error == "it exited with status 3: no disk"
            await asyncio.sleep(10)
        scene.finish(-9)
        await asyncio.sleep(3_600)
        assert (scene.task().status, scene.task().attempts) == (Status.FAILED, 3)
        assert scene.task().error == "it was killed by SIGKILL"
        assert len(scene.programs.started) == 3

    told(story, agents={"failures": 9})


@pytest.mark.parametrize(
    ("errors", "is_person_needed"),
    [
        (["no disk 0x12ab34cd at 12:30", "no disk 0x99887766 at 12:45"], True),
        (["no disk", "no light", "no light"], True),
        (["no disk", "no light", "no disk", "no light"], False),
    ],
)
def test_a_task_that_fails_in_a_row_for_the_same_reason_is_handed_to_a_person(
    errors: list[str], is_person_needed: bool
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for error in errors:
            await asyncio.sleep(1)
            assert scene.task().status is Status.EXECUTING
            scene.finish(3, RunAnswer(error=error))
        await asyncio.sleep(3)
        assert (scene.task().status is Status.FAILED) == is_person_needed
        if is_person_needed:
            assert len(scene.programs.started) == len(errors)
            await scene.say("task-retried")
            await asyncio.sleep(1)
            scene.finish(3, RunAnswer(error=errors[-1]))
            await asyncio.sleep(1)
            assert (scene.task().status, scene.task().same_failures) == (Status.EXECUTING, 1)

    settings = {"failures": 99, "same_failures": 2}
    told(story, {**ADA, "retry": "0s"}, agents=settings, tasks={"attempts": 9})


BOUNDS: list[tuple[dict[str, Any], RunSample, float, str]] = [
    ({"timeout": "5m"}, RunSample(), 300, "it took longer than 5 min"),
    ({"output": 2_048}, RunSample(4_096), 1, "it printed more than 2.0 KiB"),
    ({"memory": 1_000}, RunSample(), 1, "its processes had 1.0 MiB of memory, of at most 1000 B"),
]


@pytest.mark.parametrize(("bound", "progress", "seconds", "words"), BOUNDS)
def test_a_run_that_goes_beyond_a_bound_is_ended_and_has_failed(
    bound: dict[str, Any], progress: RunSample, seconds: float, words: str
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(0.1)
        (effect,) = [one for one in scene.world.events("effect") if one.subject == f"run-agent:{ONE}:0"]
        run = effect.id
        scene.files.printed[run] = progress
        await asyncio.sleep(seconds + 3)
        assert scene.programs.stopped[:1] == [run]
        assert (scene.task().status, scene.task().error) == (Status.PENDING, words)
        (ended,) = scene.world.events("agent-run-ended")
        assert json.loads(ended.data)["error"] == words

    told(story, {**ADA, **bound})


def test_a_run_that_ends_by_itself_beyond_its_output_has_failed() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        scene.files.printed[scene.run.id] = RunSample(4_096)
        run = scene.finish(answer=RunAnswer(True, "done"))
        await asyncio.sleep(1)
        assert (scene.task().status, scene.task().error) == (Status.PENDING, BOUNDS[1][3])
        assert scene.programs.stopped == [run]  # to clean up: nobody had looked at it before its end

    told(story, {**ADA, "output": 2_048})


def test_a_run_is_ended_when_its_claim_is_over_and_its_late_answer_counts_for_nothing() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run, token = scene.run.id, scene.run.token
        await scene.say("agent-paused", "ada")
        await scene.say("task-released", why="not now")
        with pytest.raises(Refused, match=f"the claim {token} of {ONE} is over"):
            await scene.say("task-acked", role=Role.AGENT, token=token)
        await asyncio.sleep(5)
        assert run in scene.programs.stopped
        assert (scene.task().status, scene.runs.runs) == (Status.PENDING, {})
        assert scene.world.events("task-acked", "task-failed") == []
        await scene.say("agent-resumed", "ada")
        await asyncio.sleep(1)
        assert scene.task().status is Status.EXECUTING
        assert scene.run.token > token

    told(story)


def scope_of(scene: AgentScene) -> RunScope:
    """What the run at ONE may say."""
    return RunScope("ada", ONE, scene.run.token, scene.world.clock.now, 3)


@pytest.mark.parametrize("kind", ["task-failed", "task-released"])
def test_a_run_that_says_of_itself_that_it_is_not_to_blame_is_tried_no_more_often(kind: str) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for _ in range(9):
            await asyncio.sleep(1)
            if scene.task().status is Status.EXECUTING:
                data = {"token": 1, "error": "no disk", "retry_us": 0, "blameless": True, "unbegun": True}
                data = data if kind == "task-failed" else {"why": "no disk"}
                await scene.say(kind, ONE, Role.AGENT, scope_of(scene), **data)
        task = scene.task()
        status = Status.FAILED if kind == "task-failed" else Status.PENDING
        assert (task.status, task.attempts, task.error) == (status, 3, "no disk")

    told(story, agents={"failures": 99})


def test_a_run_may_speak_of_its_own_task_alone_and_under_its_own_claim() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.create(OTHER, column="Backlog")
        await asyncio.sleep(1)
        scope = scope_of(scene)
        assert scene.world.daemon
        assert scene.world.daemon.report()["programs"] == [f"ada at {ONE} (process {scene.run.pid})"]

        async def say(kind: str, subject: str = ONE, **data: Any) -> Event:
            return await scene.say(kind, subject, Role.AGENT, scope, **data)

        part = {"project": "app", "title": "a part", "column": "Backlog"}
        refused: list[tuple[str, str, dict[str, Any]]] = [
            ("task-acked", OTHER, {"token": 1}),
            ("task-closed", ONE, {}),
            ("task-moved", OTHER, {"column": "Done"}),
            ("task-executing", OTHER, {"agent": "ada", "lease_us": 1}),
            ("task-created", "task_000003", {**part, "parent": OTHER}),
            ("task-created", "task_000003", {**part, "project": "other"}),
        ]
        for kind, subject, data in refused:
            with pytest.raises(Refused, match="a run may") as told:
                await say(kind, subject, **data)
            assert "task-" not in str(told.value)  # commands are named, and not kinds of events
            assert kind == "task-created" or "and that it failed, and add parts of it; nothing" in str(
                told.value
            )
        await say("task-created", "task_000003", **part, priority=100)
        assert (scene.task("task_000003").parent, scene.task("task_000003").priority) == (ONE, 0)
        assert set(scope.shown(scene.state())["parts"]) == {"task_000003"}
        await say("task-heartbeat", token=99)  # whatever token it says: its own is meant
        await say("task-moved", column="Test")
        assert scene.task().column == "Test"
        await say("task-released", why="not for me")
        assert (scene.task().status, scene.task().error) == (Status.PENDING, "not for me")
        late: list[tuple[str, str, dict[str, Any]]] = [
            ("task-acked", ONE, {"token": 1, "result": "done"}),
            ("task-given-up", ONE, {"why": "no"}),
            ("task-created", "task_000004", part),
        ]
        for kind, subject, data in late:
            with pytest.raises(Refused, match=f"the claim {scope.token} of {ONE} is over"):
                await say(kind, subject, **data)
        kept = [json.loads(one.data) for one in scene.world.events("task-result-refused", subject=ONE)]
        assert [(one["said"], one["result"]) for one in kept] == [
            ("task-acked", "done"), ("task-given-up", "no"), ("task-created", "a part"),
        ]  # fmt: skip

    told(story)


def test_runs_make_so_many_parts_of_one_task_and_so_deep_and_no_more() -> None:
    async def story(scene: AgentScene) -> None:
        part: dict[str, Any] = {"project": "app", "title": "a part", "column": "Backlog"}

        async def make(number: int, parent: str, scope: RunScope | None = None) -> None:
            role = Role.AGENT if scope else Role.PERSON
            await scene.say("task-created", f"task_{number:06}", role, scope, **part, parent=parent)

        await scene.begin()
        await asyncio.sleep(1)
        scope = scope_of(scene)
        await make(100, ONE, scope)
        await scene.say("task-closed", "task_000100")  # what is open below it counts all the same
        for number in range(300, 300 + MOST_PARTS):
            await make(number, ONE if number % 2 else "task_000100")
        assert len(scene.state().of(TASKS).below(ONE)) == MOST_PARTS
        with pytest.raises(Refused, match=f"{ONE} has {MOST_PARTS} open parts"):
            await make(999, ONE, scope)
        await scene.say("task-closed", "task_000301")
        await make(999, ONE, scope)
        await scene.say("task-created", "task_000200", **part)
        for number in range(201, 201 + DEEPEST):
            await make(number, f"task_{number - 1:06}")
        above, deepest = (f"task_{number + DEEPEST:06}" for number in (199, 200))
        await make(997, above, replace(scope, task=above, token=0))
        with pytest.raises(Refused, match=f"{deepest} is {DEEPEST} parts deep"):
            await make(998, deepest, replace(scope, task=deepest, token=0))

    told(story)


def test_the_lease_is_held_as_long_as_the_program_lives() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(700)
        assert scene.task().token == scene.run.token
        assert 5 <= len(scene.world.events("task-heartbeat")) <= 9

    told(story)


def test_the_end_of_a_run_is_known_at_once_also_just_after_a_heartbeat() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        while not scene.world.events("task-heartbeat"):
            assert scene.world.clock.now().since(scene.run.moment) < 103_000_000
            await asyncio.sleep(0.5)
        scene.finish(answer=RunAnswer(text="done"))
        await asyncio.sleep(0.1)
        assert scene.task().status is Status.CLOSED

    told(story)


def test_a_run_outlives_the_daemon_and_is_watched_by_the_next_one() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run = scene.run
        for end in (scene.world.end, scene.world.crash):
            await end()
            scene.programs.forget()
            await scene.start()
            await asyncio.sleep(2)
            assert scene.run == run
        scene.finish(answer=RunAnswer(text="done"))
        await asyncio.sleep(1)
        assert (scene.task().status, len(scene.programs.started)) == (Status.CLOSED, 1)

    told(story)


def test_what_ended_while_no_daemon_was_there_counts_if_it_or_its_exit_status_says_so() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.create(OTHER)
        await scene.create(THIRD)
        await scene.create(FOURTH)
        await asyncio.sleep(1)
        first, second, third, fourth = scene.runs.live
        scene.files.answers[first.id] = RunAnswer(True, "done")
        scene.files.exits |= {third.id: 0, fourth.id: -9}
        await scene.world.end()
        for run in (first, second, third, fourth):
            scene.programs.end(run.id)
        scene.programs.forget()
        await scene.start()
        await asyncio.sleep(2)
        assert scene.task().status is scene.task(THIRD).status is Status.CLOSED
        assert scene.task(OTHER).error == "it ended while Pulse was not there to see how"
        assert scene.task(FOURTH).error == "it was killed by SIGKILL"

    told(story, {**ADA, "concurrency": 4})


@pytest.mark.parametrize("is_started", [True, False])
def test_a_crash_between_claim_and_record_starts_nothing_twice(is_started: bool) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run, token = scene.run, scene.run.token
        # As if the daemon had died before it could record the start.
        log = scene.world.log
        await scene.world.crash()
        cut = next(place for place, event in enumerate(log.events) if event.kind == "agent-run-started")
        del log.events[cut:]
        if not is_started:
            scene.programs.live.clear()
        await scene.start()
        await asyncio.sleep(2)
        if is_started:
            assert (scene.run.main, scene.run.token) == (run.main, token)
        else:
            assert scene.task().error == "Pulse ended before the agent was started"
        assert len(scene.programs.started) == 1
        assert len(scene.world.events("task-executing")) == 1

    told(story)


def test_an_agent_that_cannot_be_started_fails_its_task() -> None:
    async def story(scene: AgentScene) -> None:
        scene.programs.refusal = "there is no such program"
        await scene.begin()
        await asyncio.sleep(2)
        assert (scene.task().status, scene.task().error) == (Status.PENDING, "there is no such program")
        scene.programs.refusal, scene.files.refusal = "", "the repository is gone"
        await asyncio.sleep(70)
        assert scene.task().error == "the repository is gone"

    told(story)


def test_a_repository_that_is_gone_is_no_failure_of_the_agents() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.refusal = "the repository is gone"
        await scene.begin()
        await asyncio.sleep(600)
        assert (scene.task().status, scene.task().attempts) == (Status.FAILED, 3)
        assert scene.state().of(STATS)["ada"].consecutive_failures == 0

    told(story, {**ADA, "retry": "1s"}, agents={"failures": 1, "same_failures": 2})


def test_a_retry_begins_at_once_although_the_same_attempt_has_just_failed() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.refusal = "the repository is gone"
        await scene.begin()
        await asyncio.sleep(1)
        assert scene.task().status is Status.FAILED
        await scene.say("task-retried")
        scene.files.refusal = ""
        await asyncio.sleep(1)
        assert scene.task().status is Status.EXECUTING

    told(story, tasks={"attempts": 1})


def test_where_the_disk_is_full_a_task_waits_for_room_and_no_agent_is_to_blame() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.refusal = "git worktree failed in /srv/app: error: No space left on device"
        await scene.begin()
        await asyncio.sleep(86_400)
        assert (
            25 <= len(scene.world.events("task-failed")) <= 31
        )  # once an hour in the end, for no word of it may be true
        assert (scene.task().status, scene.task().attempts) == (Status.PENDING, 0)
        assert scene.task().error == scene.files.refusal
        scene.files.refusal = ""
        await asyncio.sleep(3_700)
        assert (len(scene.runs.live), scene.task().attempts) == (1, 1)

    told(story, agents={"failures": 1}, **RARE)


def test_an_agent_that_meets_the_full_disk_in_the_middle_of_its_work_is_not_to_blame() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.is_full = True
        await scene.begin()
        await asyncio.sleep(1)
        scene.finish(1)
        await asyncio.sleep(1)
        assert (scene.task().status, scene.task().attempts) == (Status.PENDING, 0)
        assert scene.task().error == "it exited with status 1; the disk is full"
        scene.files.is_full = False
        await asyncio.sleep(70)
        scene.finish(1)
        await asyncio.sleep(15)
        assert (scene.task().attempts, scene.task().shortages) == (1, 0)
        assert "agent:ada" in scene.state().conditions.raised  # of that one failure it is to blame

    told(story, agents={"failures": 1})


def test_an_agent_that_is_taken_out_of_the_settings_is_not_told_to_work_again() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        scene.finish(1)
        await asyncio.sleep(20)
        assert "agent:ada" in scene.state().conditions.raised
        scene.world.settings = scene.world.settings.model_copy(update={"agent": ()})
        assert scene.world.daemon is not None
        scene.world.daemon.request_reload()
        await asyncio.sleep(30)
        (cleared,) = scene.world.events("condition-cleared", subject="agent:ada")
        words = "it is no agent of the settings any more"
        assert json.loads(cleared.data) == {"evidence": words, "unwatched": True}
        notices = [one for one in scene.world.events("effect") if one.subject == "notify:agent:ada"]
        params = json.loads(notices[-1].data)["params"]
        assert (params["title"], params["text"]) == ("no longer watched: agent ada fails", words)

    told(story, agents={"failures": 1})


def test_of_an_agent_that_is_set_aside_it_is_told_at_once_though_nothing_else_runs() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        await scene.create("task_000001")
        await asyncio.sleep(1)
        scene.finish(1)
        await asyncio.sleep(30)
        (ended,) = scene.world.events("agent-run-ended")
        (raised,) = scene.world.events("condition-raised", subject="agent:ada")
        assert raised.moment.since(ended.moment) < 1_000_000

    told(story, agents={"failures": 1})


def test_an_agent_that_fails_repeatedly_is_set_aside_told_of_and_tried_again() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(6):
            await scene.create(f"task_00000{number}")
        for _ in range(4):
            await asyncio.sleep(1)
            scene.finish(1)
        await asyncio.sleep(30)
        assert scene.runs.live == ()
        stands, failed = (
            scene.state().conditions.raised["agent:ada"],
            scene.world.events("agent-run-ended")[2],
        )
        assert (stands.state, stands.began.at) == ("failing", failed.at)
        (notice,) = [one for one in scene.world.events("effect") if one.subject == "notify:agent:ada"]
        assert "3 failures in a row, which set it aside for" in notice.data
        raised, again = scene.world.events("condition-raised", subject="agent:ada")
        assert raised.seq < notice.seq, "its incident tells of the notice"
        assert "4 failures in a row" in again.data
        assert "4 failures in a row" in stands.evidence
        assert scene.world.daemon is not None
        said = scene.world.daemon.report()["capabilities"]["agents"]
        assert "ada is set aside for" in said[1]
        await asyncio.sleep(1_200)
        assert len(scene.runs.live) == 1  # on trial, one task although it could do two
        (condition,) = scene.world.daemon.report()["conditions"]
        assert "it is set aside" not in condition["evidence"]
        scene.finish(1)
        await asyncio.sleep(2_300)
        (condition,) = scene.world.daemon.report()["conditions"]
        assert condition["evidence"].startswith(
            "5 failures in a row, which set it aside for 40 min, raised 3"
        )
        assert scene.runs.live == ()
        await asyncio.sleep(200)
        scene.finish(0)
        await asyncio.sleep(30)
        assert "agent:ada" not in scene.state().conditions.raised
        assert len(scene.runs.live) == 2
        notices = [one for one in scene.world.events("effect") if one.subject == "notify:agent:ada"]
        assert [json.loads(one.data)["params"]["over"] for one in notices] == [False, True]

    told(story, {**ADA, "concurrency": 2}, agents={"failures": 3})


def test_who_is_not_logged_in_is_told_of_once_and_gets_nothing_until_it_is_and_no_attempt_is_lost() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.create(OTHER)
        await asyncio.sleep(1)
        scene.finish(1, RunAnswer(False, error="Invalid API key · Please run /login"))
        await asyncio.sleep(86_400)
        assert (scene.task().status, scene.task().attempts) == (Status.PENDING, 0)
        assert len(scene.programs.started) == 1
        assert scene.state().of(STATS)["ada"].failed == 0
        why = "the agent is not logged in: Invalid API key · Please run /login"
        assert scene.runs.aside == {"ada": why}
        (notice,) = scene.world.events("effect", subject="notify:agent:ada")
        assert json.loads(notice.data)["params"]["text"] == (
            f"{why}; once that is mended, upulse agents doctor has it go on"
        )
        await scene.say("agent-resumed", "ada")  # as `upulse agents doctor` does
        await asyncio.sleep(1)
        scene.finish(0, RunAnswer(True))
        await asyncio.sleep(30)
        assert scene.task().status is Status.CLOSED
        assert len(scene.world.events("effect", subject="notify:agent:ada")) == 2

    told(story, {**ADA, "kind": "claude"}, **RARE)


FOLLOWS: list[tuple[str, int, RunAnswer, int]] = [
    ("claude", 0, RunAnswer(False, error="stop_reason refusal: I can't help with that"), 1),
    ("claude", 1, RunAnswer(False, error="API Error: … appears to violate our Usage Policy"), 1),
    ("claude", 0, RunAnswer(False, error="its output ends without a result", garbled=True), 2),
    ("claude", -9, RunAnswer(False, error="its output ends without a result", garbled=True), 4),
    ("command", 1, RunAnswer(error="a test says: 401 Unauthorized, see the usage policy"), 4),
]


@pytest.mark.parametrize(("kind", "code", "answer", "attempts"), sampled(FOLLOWS, 2))
def test_how_often_a_task_is_tried_depends_on_why_it_failed(
    kind: str, code: int, answer: RunAnswer, attempts: int
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for _ in range(attempts):
            await asyncio.sleep(1)
            assert scene.task().status is Status.EXECUTING
            scene.finish(code, answer)
            await asyncio.sleep(600)
        assert (scene.task().status, len(scene.programs.started)) == (Status.FAILED, attempts)
        assert scene.runs.aside == {}

    told(story, {**ADA, "kind": kind}, agents={"failures": 9, "same_failures": 9}, tasks={"attempts": 4})


def test_a_person_can_have_an_agent_go_on_that_was_set_aside() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.create(OTHER)
        await asyncio.sleep(1)
        scene.finish(1)
        await asyncio.sleep(5)
        assert scene.runs.live == ()
        with pytest.raises(Exception, match="bob"):
            await scene.say("agent-resumed", "bob")
        await scene.say("agent-resumed", "ada")
        await asyncio.sleep(1)
        assert len(scene.runs.live) == 1

    told(story, agents={"failures": 1})


def test_a_folder_with_work_in_it_stays_and_that_is_said() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.kept = "2 commits of it are not pushed"
        await scene.begin()
        await asyncio.sleep(1)
        scene.finish()
        await asyncio.sleep(2)
        (kept,) = scene.world.events("workspace-kept")
        assert json.loads(kept.data) == {"path": f"/work/{ONE}", "why": "2 commits of it are not pushed"}
        assert (scene.files.removed, scene.runs.worktrees) == ([], {})
        assert scene.runs.kept == {ONE: (f"/work/{ONE}", "2 commits of it are not pushed")}

        scene.files.kept = ""
        wish = Effect(action="remove-workspace", key="by hand", params={"task": ONE})
        await scene.say("task-created", OTHER, project="app", title="another one")
        await asyncio.sleep(1)
        await scene.world.ask(wish.model_copy(update={"key": "in use", "params": {"task": OTHER}}))
        await scene.world.ask(wish)
        await asyncio.sleep(1)
        assert f"{OTHER} has not ended" in scene.world.events("effect-failed")[-1].data
        assert (scene.files.removed, scene.runs.kept) == ([f"/work/{ONE}"], {})

    told(story)


def test_a_pull_request_is_opened_once_and_stands_with_its_task() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        wish = Effect(action="open-pull-request", key=f"open-pull-request:{ONE}", params={"task": ONE})
        await asyncio.sleep(1)
        scene.files.refusal = "3 commits of it are not pushed"
        await scene.world.ask(wish)
        await asyncio.sleep(1)
        assert "3 commits of it are not pushed" in scene.world.events("effect-failed")[-1].data
        scene.files.refusal = ""
        scene.finish()
        await asyncio.sleep(1)
        assert scene.task().status is Status.CLOSED
        for _ in range(2):
            await scene.world.ask(wish)
            await asyncio.sleep(1)
        assert scene.task().pull_request == "https://host/0/mend it"
        assert len(scene.world.events("task-pull-request-opened")) == 1

    told(story)


def test_what_an_agent_has_committed_is_part_of_the_result() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.made = ["abc1234 mend it"]
        await scene.begin()
        await asyncio.sleep(1)
        scene.finish()
        await asyncio.sleep(1)
        assert scene.task().data["commits"] == ["abc1234 mend it"]

    told(story)


def test_a_git_that_hangs_keeps_neither_a_result_nor_the_heartbeats_of_other_runs() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.made, scene.files.git_takes = ["abc1234 mend it"], 300.0
        await scene.begin()
        await scene.create(OTHER)
        await asyncio.sleep(1)
        scene.finish(answer=RunAnswer(text="done"))
        await asyncio.sleep(60)
        assert (scene.task().status, scene.task().result) == (Status.CLOSED, "done")
        assert "commits" not in scene.task().data
        assert (scene.task(OTHER).status, scene.task(OTHER).attempts) == (Status.EXECUTING, 1)
        assert scene.run.task == OTHER

    told(story, {**ADA, "concurrency": 2, "lease": "15s"})


def test_nothing_is_assigned_where_people_do_that_and_what_they_assign_is_done() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(120)
        assert scene.task().status is Status.PENDING
        await scene.say("task-assigned", agent="ada")
        await asyncio.sleep(1)
        assert scene.task().status is Status.EXECUTING

    told(story, agents={"assign": False})


def test_who_claims_a_task_by_hand_gets_its_worktree_too_and_it_is_removed_at_the_end() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.say("project-set", "app", repository="/srv/app")
        token = (await scene.say("task-executing", agent="eve", lease_us=3_600_000_000)).seq
        await asyncio.sleep(1)
        (made,) = scene.world.events("workspace-made")
        assert json.loads(made.data) == {"path": f"/work/{ONE}", "branch": "feat/x"}
        await scene.say("task-released", token=token)
        await scene.say("task-executing", agent="eve", lease_us=3_600_000_000)
        await asyncio.sleep(1)
        assert len(scene.world.events("workspace-made")) == 1  # the same one
        await scene.say("task-acked", token=scene.task().token)
        await asyncio.sleep(1)
        assert scene.files.removed == [f"/work/{ONE}"]

    told(story, agents={"assign": False})


def test_a_worktree_that_cannot_be_made_is_tried_again_while_the_claim_holds() -> None:
    async def story(scene: AgentScene) -> None:
        scene.files.refusal = "the repository is gone"
        await scene.begin()
        await scene.say("project-set", "app", repository="/srv/app")
        await scene.say("task-executing", agent="eve", lease_us=3_600_000_000)
        await asyncio.sleep(30)
        assert len(scene.world.events("effect-failed")) == 1
        scene.files.refusal = ""
        await asyncio.sleep(150)
        assert len(scene.world.events("workspace-made")) == 1

    told(story, agents={"assign": False})


def test_a_rule_inside_decides_who_gets_a_task_or_that_nobody_does() -> None:
    async def decide(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        verdict = await inner(prev, curr)
        for task in curr.of(TASKS).tasks.values():
            if task.status is Status.PENDING:
                params = {"task": task.id, "agent": "bob" if task.id == OTHER else ""}
                key = f"assign-task:{task.id}"
                verdict = verdict.plus(Effect(action="assign-task", key=key, params=params, reason="so"))
        return verdict

    async def story(scene: AgentScene) -> None:
        scene.world.rules = (*scene.world.rules, decide)
        await scene.begin()
        await scene.create(OTHER)
        await asyncio.sleep(30)
        assert scene.task().status is Status.PENDING
        assert scene.task(OTHER).agent == "bob"
        assert len([one for one in scene.world.events("effect") if "assign-task" in one.subject]) == 1

    told(story, ADA, {**ADA, "name": "bob"})


def test_a_program_that_cannot_be_ended_is_tried_again_with_pauses() -> None:
    async def story(scene: AgentScene) -> None:
        scene.programs.immortal = True
        await scene.begin()
        await asyncio.sleep(600)
        assert scene.task().status is Status.EXECUTING
        wished = [one for one in scene.world.events("effect") if one.subject.startswith("stop-agent-run")]
        assert 3 <= len(wished) <= 6
        assert "may not be ended" in scene.world.events("effect-failed")[-1].data
        scene.programs.immortal = False
        await asyncio.sleep(70)
        assert scene.task().error == "it took longer than 5 min"

    told(story, {**ADA, "timeout": "5m"})


def test_an_agent_over_its_budget_gets_nothing() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for number in range(3):
            await scene.create(f"task_10000{number}")
        await asyncio.sleep(1)
        scene.finish(
            answer=RunAnswer(True, usage={"total_cost_usd": 3.0})
        )  # as the next one would be likely to do
        await asyncio.sleep(300)
        assert scene.runs.live == ()
        assert scene.world.daemon is not None
        said = scene.world.daemon.report()["capabilities"]["agents"]
        assert "ada is at or near its budget of 5 a day for at most another 23.9 h" in said[1]

    told(story, {**ADA, "cost_per_day": 5.0})


def test_all_agents_together_over_the_budget_of_a_day_get_nothing() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.create(OTHER)
        await asyncio.sleep(1)
        assert {run.agent for run in scene.runs.live} == {"ada", "bob"}
        for _ in range(2):
            scene.finish(answer=RunAnswer(True, usage={"total_cost_usd": 3.0}))
            await asyncio.sleep(1)
        await scene.create(THIRD)
        await asyncio.sleep(300)
        assert scene.runs.live == ()
        assert scene.world.daemon is not None
        said = scene.world.daemon.report()["capabilities"]["agents"]
        assert "ada is at or near the budget of all agents of 5 a day for at most another 23.9 h" in said[1]

    told(story, ADA, {**ADA, "name": "bob"}, agents={"cost_per_day": 5.0})


@pytest.mark.parametrize("by_person", sampled([False, True], 2))
@pytest.mark.parametrize(("own", "whole"), [(7.0, 0.0), (0.0, 7.0), (9.0, 7.0)])
def test_runs_that_work_at_the_same_time_do_not_go_over_a_budget_together(
    own: float, whole: float, by_person: bool
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        ids = [f"task_10000{number}" for number in range(9)]
        for id_ in ids:
            await scene.create(id_)
            if by_person:
                await scene.say("task-assigned", id_, agent="ada")
        await asyncio.sleep(2)
        assert len(scene.runs.live) == 3  # 3 * 2, of at most 7
        await scene.world.crash()
        scene.programs.forget()
        await scene.start()
        await asyncio.sleep(2)
        assert len(scene.runs.live) == 3
        spent = 0.0
        for cost, begun in ((1.0, 3), (2.0, 2), (2.0, 1), (0.5, 0), (0.5, 0)):
            if not scene.runs.live:
                break
            scene.finish(answer=RunAnswer(True, usage={"total_cost_usd": cost}))
            spent += cost
            await asyncio.sleep(2)
            assert (len(scene.runs.live), cost) == (begun, cost)
            assert spent + 2 * len(scene.runs.live) <= 7

    general = {"cost_per_day": whole, "assign": not by_person, "failures": 99}
    told(story, {**ADA, "concurrency": 9, "cost_per_run": 2.0, "cost_per_day": own}, agents=general)


def test_a_run_that_is_likely_to_have_cost_what_it_may_is_held() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        await do(scene, 0, 4, cost=1.0, tokens=1_000)
        await scene.create()
        for tokens, held in ((2_900, ""), (3_100, "it has cost about 3.10, of at most 3")):
            await asyncio.sleep(2)
            scene.files.printed[scene.run.id] = RunSample(1, 0, 4, tokens)
            await asyncio.sleep(2)
            assert scene.run.held == held

    told(story, {**ADA, "cost_per_run": 3.0})


def test_a_run_that_failed_at_what_it_may_cost_is_handed_to_a_person() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        scene.finish(1, RunAnswer(False, error="error_max_budget_usd", usage={"total_cost_usd": 2.1}))
        await asyncio.sleep(1)
        assert scene.task().status is Status.FAILED
        assert scene.task().error == "error_max_budget_usd; it cost 2.10, of at most 2"

    told(story, {**ADA, "cost_per_run": 2.0})


def test_a_task_whose_attempts_cost_too_much_is_handed_to_a_person() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        for _ in range(2):
            await asyncio.sleep(100)
            scene.finish(1, RunAnswer(error="no", usage={"total_cost_usd": 0.6}))
        await asyncio.sleep(600)
        assert scene.task().status is Status.FAILED
        assert scene.task().error == "it exited with status 1: no; its attempts cost 1.20, of at most 1"

    told(story, agents={"cost_per_task": 1.0})


async def wish_to_go_on(scene: AgentScene) -> None:
    """As a person does by `upulse effect add`."""
    assert scene.world.daemon is not None
    params = {"run": scene.run.id, "why": "it is worth it", "over": True}
    wished = Effect(action="pause-agent-run", key="go on", params=params, reason="so")
    await scene.world.daemon.gate.append(Role.PERSON, "eve", [Draft(wished)])


HELD: list[tuple[dict[str, Any], RunSample, str]] = [
    ({"turns": 50}, RunSample(turns=51), "it took 51 turns, of at most 50"),
    ({"silence": "2m"}, RunSample(1, 121_000_000), "it printed nothing for 2 min"),
    ({"same_turns": 5}, RunSample(turns=9, same_turns=5), "its last 5 turns said nothing new"),
]


@pytest.mark.parametrize("goes_on", sampled([False, True], 2))
@pytest.mark.parametrize(("bound", "progress", "words"), HELD)
def test_a_run_that_gets_nowhere_is_held_then_ended_and_a_person_decides(
    bound: dict[str, Any], progress: RunSample, words: str, goes_on: bool
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run = scene.run
        scene.files.printed[run.id] = progress
        await asyncio.sleep(2)
        assert scene.programs.paused == {run.id}
        assert scene.run.held == words
        assert scene.world.daemon is not None
        assert scene.world.daemon.report()["capabilities"]["agents"] == ["agents    1, 0 at work on 0 tasks"]
        topic = f"notify:agent-run:{ONE}"
        (notice,) = scene.world.events("effect", subject=topic)
        assert f"ada: {words}; it is stopped after 10 min, unless a person has it go on" in notice.data
        if goes_on:
            await wish_to_go_on(scene)
        await asyncio.sleep(590)
        assert scene.run.id == run.id
        await asyncio.sleep(20)
        notices = [json.loads(one.data)["params"] for one in scene.world.events("effect", subject=topic)]
        assert [one["over"] for one in notices] == [False, True]
        if goes_on:
            assert (scene.programs.paused, scene.run.id) == (set(), run.id)
            return
        assert scene.programs.stopped[:1] == [run.id]
        assert scene.task().status is Status.FAILED
        assert scene.task().error == f"{words}, and nobody has had it go on"

    told(story, {**ADA, **bound})


def test_a_held_run_is_said_to_end_when_its_time_is_over_if_that_is_before_its_hold() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run = scene.run
        scene.files.printed[run.id] = RunSample(1, 121_000_000)
        await asyncio.sleep(2)
        (notice,) = scene.world.events("effect", subject=f"notify:agent-run:{ONE}")
        assert re.search(
            r"for 2 min; it is stopped after (8|7[.]9) min, when its time is over: ", notice.data
        )
        await asyncio.sleep(470)
        assert scene.run.id == run.id
        await asyncio.sleep(20)
        assert scene.task().error == "it took longer than 8 min"

    told(story, {**ADA, "silence": "2m", "timeout": "8m"})


async def do(
    scene: AgentScene,
    number: int,
    turns: int,
    code: int = 0,
    cost: float = 0.0,
    tokens: int = 0,
    minutes: float = 0.01,
) -> None:
    """Have another task done."""
    await scene.create(f"task_10000{number}")
    await asyncio.sleep(60 * minutes)
    scene.files.printed[scene.run.id] = RunSample(1, 0, turns, tokens)
    scene.finish(code, RunAnswer(True, usage={"total_cost_usd": cost}))
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("settings", "held"),
    [
        ({}, "it took 41 turns, and 4 are usual"),
        ({"times_usual": 11}, ""),
        ({"times_usual": 9}, "it took 41 turns, and 4 are usual"),
        ({"times_usual": 0}, ""),
    ],
)
def test_what_is_usual_is_known_after_some_runs_and_one_of_far_more_turns_is_held(
    settings: dict[str, Any], held: str
) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(5):
            await do(scene, number, 4)
        await scene.create()
        await asyncio.sleep(1)
        scene.files.printed[scene.run.id] = RunSample(1, 0, 41)
        await asyncio.sleep(2)
        assert scene.run.held == held

    told(story, {**ADA, **settings})


@pytest.mark.parametrize(("rate_over", "cost"), [("5m", "1.60"), ("20m", "0.40")])
def test_over_what_time_rates_are_taken_the_settings_say(rate_over: str, cost: str) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(5):
            await do(scene, number, 4, cost=0.5, minutes=25)
        await do(scene, 5, 4, 1, cost=8.0, minutes=5)
        error = scene.task("task_100005").error
        assert f"; it cost {cost} a minute" in error

    told(story, {**ADA, "rate_over": rate_over})


@pytest.mark.parametrize("kept", ["printed", ""])
def test_of_what_a_run_printed_as_much_is_kept_as_the_settings_say(kept: str) -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run = scene.finish()
        await asyncio.sleep(1)
        found = [json.loads(one.data) for one in scene.world.events("agent-run-printed", subject=run)]
        assert found == ([{"text": kept}] if kept else [])
        assert scene.world.events("agent-run-cleaned")

    told(story, agents={"keep_output": len(kept)})


def test_an_agent_is_set_aside_for_no_longer_than_the_settings_say() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(2):
            await scene.create(f"task_00000{number}")
        for wait in (1, 61):
            await asyncio.sleep(wait)
            assert len(scene.runs.live) == 1
            scene.finish(1)
            await asyncio.sleep(1)
        assert "which set it aside for 90 s" in scene.state().conditions.raised["agent:ada"].evidence

    told(story, agents={"failures": 1, "pause": "1m", "pause_max": "90s"})


def test_a_run_that_takes_tokens_far_faster_than_usual_is_held_and_one_that_only_goes_on_for_long_is_not() -> (
    None
):
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(5):
            await do(scene, number, 4, tokens=2_000, minutes=10)
        await scene.create()
        await asyncio.sleep(1)
        for minute in range(1, 61):  # thirty times as many as usual, at five times their rate
            scene.files.printed[scene.run.id] = RunSample(1, 0, 4, minute * 1_000)
            await asyncio.sleep(60)
        assert scene.run.held == ""
        await scene.world.crash()
        scene.programs.forget()
        await scene.start()
        counted = scene.run.tokens
        assert counted >= 55_000
        for tokens, held in ((9_900, ""), (10_100, "it took 2,020 tokens a minute, and 200 are usual")):
            scene.files.printed[scene.run.id] = RunSample(1, 0, 4, counted + tokens)
            await asyncio.sleep(3)
            assert scene.run.held == held

    told(story, {**ADA, "timeout": "2h"})


def test_a_run_has_a_budget_of_tokens() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        scene.files.printed[scene.run.id] = RunSample(1, 0, 4, 5_001)
        await asyncio.sleep(2)
        assert scene.run.held == "it took 5,001 tokens, of at most 5,000"

    told(story, {**ADA, "tokens": 5_000})


def test_one_that_failed_at_far_more_than_the_usual_cost_is_not_tried_again() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.start()
        await scene.say("project-set", "app")
        for number in range(5):
            await do(scene, number, 4, cost=0.5, minutes=10)
        await do(scene, 5, 4, 1, cost=5.1, minutes=20)
        assert scene.task("task_100005").status is Status.PENDING  # it took its time
        await scene.say("task-given-up", "task_100005")
        await do(scene, 6, 4, 1, cost=8.0, minutes=7)
        task = scene.task("task_100006")
        assert task.status is Status.FAILED
        assert task.error == "it exited with status 1; it cost 1.14 a minute, and 0.11 is usual"

    told(story)


def test_what_runs_have_left_behind_is_ended_and_a_run_that_goes_on_is_not() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        (run,) = scene.runs.live
        hour = 3_600_000_000
        scene.programs.live["gone"] = ProcessId(77, 5)
        scene.programs.left = [
            OrphanProgram(*run.main, run.id, "ada", hour),
            OrphanProgram(77, 5, "gone", "ada", hour),
        ]
        await asyncio.sleep(120)
        assert scene.programs.stopped == ["gone"]
        (effect,) = scene.world.events("effect", subject="end-agent-orphan:77:5")
        assert json.loads(effect.data)["params"]["run"] == "gone"

    told(story, agents={"orphans": "end"})


def test_a_holder_that_comes_back_when_its_lease_has_long_ended_has_lost_its_claim() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await scene.say("task-executing", agent="eve", lease_us=60_000_000)
        token = scene.task().token
        await asyncio.sleep(90)  # it is stopped meanwhile
        assert (scene.task().status, scene.task().attempts) == (Status.EXECUTING, 2)  # by ada
        words = f"the claim {token} of {ONE} is over: ada holds it"
        with pytest.raises(Refused, match=words):
            await scene.say("task-heartbeat", role=Role.AGENT, token=token)
        with pytest.raises(Refused, match=words):
            await scene.say("task-acked", role=Role.AGENT, token=token, result="from eve")
        (refused,) = scene.world.events("task-result-refused")
        assert json.loads(refused.data)["result"] == "from eve"
        scene.finish(answer=RunAnswer(text="from ada"))
        await asyncio.sleep(1)
        assert (scene.task().status, scene.task().result) == (Status.CLOSED, "from ada")

    told(story)


def test_a_run_whose_daemon_was_held_for_longer_than_the_lease_is_done_once_all_the_same() -> None:
    async def story(scene: AgentScene) -> None:
        await scene.begin()
        await asyncio.sleep(1)
        run = scene.run
        await scene.world.crash()
        await asyncio.sleep(900)
        scene.programs.forget()
        await scene.start()
        await asyncio.sleep(2)
        assert (scene.run.main, scene.run.token, scene.programs.stopped) == (run.main, run.token, [])
        scene.finish(answer=RunAnswer(text="done"))
        await asyncio.sleep(1)
        assert (scene.task().status, len(scene.programs.started)) == (Status.CLOSED, 1)

    told(story)
