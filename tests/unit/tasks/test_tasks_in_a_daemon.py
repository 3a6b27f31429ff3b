"""Tasks as the whole daemon lives with them, in virtual time: who may do what, one winner, claims that end."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.memory.programs import MemoryPrograms
from pulse_core.capability import ExecutorContext
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import ConditionCleared, ConditionRaised, Effect, Paused
from pulse_core.model.moment import Moment, iso
from pulse_core.model.payload import Role, parse
from pulse_core.model.text import DATA
from pulse_core.projections.state import Snapshot, State
from pulse_core.tasks.admission import DEEPEST
from pulse_core.tasks.executors import executors
from pulse_core.tasks.projection import FEW, TASKS
from pulse_core.tasks.task import Status, TaskState
from pulse_core.tick.ticker import encode_snapshot
from tests.simulation.world import World, simulate
from tests.unit.tasks.task_events import TaskLog

ONE, OTHER = "task_000001", "task_000002"
EARLY = Moment(0, "boot", 0)
QUIET: dict[str, Any] = {"daemon": {"tick_ms": 60_000}}


async def say(
    world: World, kind: str, subject: str = ONE, role: Role = Role.PERSON, actor: str = "eve", **data: Any
) -> Event:
    """Record what somebody says, through the front door."""
    assert world.daemon is not None
    (recorded,) = await world.daemon.gate.append(role, actor, [Draft(parse(kind, data), subject)])
    return recorded.event


async def claim(world: World, agent: str = "ada", subject: str = ONE, lease_us: int = 60_000_000) -> int:
    event = await say(world, "task-executing", subject, Role.AGENT, agent=agent, lease_us=lease_us)
    return event.seq


def task(world: World, id_: str = ONE) -> TaskState:
    assert world.daemon is not None
    found = world.daemon.parts.view().of(TASKS).find(id_)
    assert found is not None
    return found


def give_executors(world: World) -> None:
    """The executors of tasks, for this daemon and those after it."""

    async def append(draft: Draft) -> Event:
        assert world.daemon is not None
        return await world.daemon.gate.append_own(draft)

    def state() -> Any:
        assert world.daemon is not None
        return world.daemon.parts.view()

    home = HomeLayout(Path("/home"))
    context = ExecutorContext(lambda: world.settings, state, append, MemoryPrograms(), home)
    world.executors |= {one.action: one for one in executors(context)}


async def begun(world: World, **project: Any) -> None:
    """A daemon, a project and a task."""
    give_executors(world)
    await world.start()
    await say(world, "project-set", "app", **project)
    await say(world, "task-created", project="app", title="mend it")


def told(story: Callable[[World], Awaitable[None]], **settings: Any) -> World:
    return simulate(story, {**QUIET, **settings})


def test_of_fifty_who_claim_at_once_one_wins_and_the_others_are_told_who() -> None:
    async def story(world: World) -> None:
        await begun(world)
        claims = (claim(world, f"agent-{number}") for number in range(50))
        answers = await asyncio.gather(*claims, return_exceptions=True)
        tokens = [one for one in answers if isinstance(one, int)]
        assert len(tokens) == 1
        winner = task(world)
        assert (winner.status, winner.token) == (Status.EXECUTING, tokens[0])
        refusals = {str(one) for one in answers if isinstance(one, Refused)}
        assert len([one for one in answers if isinstance(one, Refused)]) == 49
        (words,) = refusals
        assert words.startswith(f"{ONE} is executing by {winner.agent}: claim is not possible")
        assert len(world.events("task-executing")) == 1

    told(story)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("task-created", {"project": "app", "title": "again"}, "there is a task task_000001 already"),
    (
        "task-acked",
        {"token": 1},
        "is over: it is pending; possible: upulse task assign, block, claim, close, deps, give-up, move, retry",
    ),
    ("task-heartbeat", {"token": 7}, "the claim 7 of task_000001 is over: it is pending"),
    ("task-released", {}, "release is not possible; possible: upulse task assign, block"),
    ("task-executing", {"agent": "eve", "lease_us": 1}, "eve is no member of app"),
    ("task-moved", {"column": "Nowhere"}, "no column 'Nowhere'; it has Backlog, Ready, In progress, Review"),
    ("task-blockers-set", {"blockers": [ONE]}, f"{ONE} would wait for itself"),
    ("task-blockers-set", {"blockers": [OTHER]}, f"no open task '{OTHER}'"),
    ("task-assigned", {"agent": "eve"}, "eve is no member of app; its members are ada, bob"),
]


@pytest.mark.parametrize(("kind", "data", "words"), REFUSED)
def test_what_is_not_possible_is_refused_with_what_is(kind: str, data: dict[str, Any], words: str) -> None:
    async def story(world: World) -> None:
        await begun(world, members=["ada", "bob"])
        rows, before = len(world.log.events), task(world)
        with pytest.raises(PulseError) as refused:
            await say(world, kind, **data)
        assert words in str(refused.value)
        assert {event.kind for event in world.log.events[rows:]} <= {"task-result-refused"}
        assert task(world) == before

    told(story)


@pytest.mark.parametrize(
    ("subject", "data", "words"),
    [
        (OTHER, {"project": "app", "title": " \u00a0"}, "its title is blank; say in a few words"),
        (OTHER, {"project": "app", "title": "a\nb"}, "title: must be one line, without newlines"),
        (OTHER, {"project": "app", "title": "\x1b[31m"}, "title: must be one line, without newlines"),
        (OTHER, {"project": "my app"}, "project: must be letters, digits, '.'"),
        (OTHER, {"project": "app", "labels": ["a b"]}, "labels.0: must be letters, digits and"),
        (OTHER, {"project": "app", "parent": "1"}, "parent: must be 'task_' and 6 to 32"),
        ("nonsense", {"project": "app"}, "'nonsense' is no id of a task"),
        (OTHER, {"project": "apt"}, "no project 'apt'; there are app"),
        (OTHER, {"project": "app", "column": "Later"}, "has no column 'Later'"),
        (OTHER, {"project": "app", "blockers": ["task_000009"]}, "no open task 'task_000009'"),
        (OTHER, {"project": "app", "parent": "task_000009"}, "no open task 'task_000009'"),
    ],
)
def test_a_task_without_a_place_is_refused(subject: str, data: dict[str, Any], words: str) -> None:
    async def story(world: World) -> None:
        await begun(world)
        with pytest.raises(PulseError) as refused:
            await say(world, "task-created", subject, **{"title": "no", **data})
        assert words in str(refused.value)

    told(story)


def test_there_are_no_more_open_tasks_than_the_settings_say() -> None:
    async def story(world: World) -> None:
        await begun(world)
        with pytest.raises(Refused, match=r"as many tasks are open as may be \(1\); close some"):
            await say(world, "task-created", OTHER, project="app", title="one more")

    told(story, tasks={"most": 1})


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("task-failed", {"error": "no such file"}),
        ("task-blocked", {"why": "no such file"}),
        ("task-released", {"why": "no such file"}),
    ],
)
def test_a_task_that_waits_for_a_person_is_told_once_and_when_that_is_over(
    kind: str, data: dict[str, Any]
) -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, kind, role=Role.AGENT, token=await claim(world), **data)
        await asyncio.sleep(1)
        assert len(notices(world)) == 1
        (notice,) = notices(world)
        assert notice["title"] == f"{ONE} waits for a person"
        assert notice["text"] == f"mend it: no such file; upulse task retry {ONE}"
        await say(world, "task-created", OTHER, project="app", title="something else")
        await asyncio.sleep(120)
        assert len(notices(world)) == 1
        await say(world, "task-retried")
        await asyncio.sleep(1)
        assert len(notices(world)) == 2
        assert notices(world)[-1]["title"] == f"resolved: {ONE} waits for a person"
        assert (
            json.loads(world.events("effect")[-1].data)["reason"]
            == "resolved: it was retried, closed or given up"
        )
        await say(world, kind, role=Role.AGENT, token=await claim(world), **data)
        await asyncio.sleep(1)
        assert len(notices(world)) == 3

    told(story, tasks={"attempts": 1})


def notices(world: World) -> list[dict[str, Any]]:
    """What was told about tasks, oldest first."""
    wishes = (json.loads(event.data) for event in world.events("effect"))
    return [one["params"] for one in wishes if one["key"].startswith("notify:task:")]


def test_who_does_not_hold_a_task_has_no_say_in_it_but_a_person_has() -> None:
    async def story(world: World) -> None:
        await begun(world)
        token = await claim(world)
        with pytest.raises(Refused, match="is held by ada; say the token of the claim"):
            await say(world, "task-given-up", role=Role.AGENT)
        with pytest.raises(
            Refused, match=f"the claim {token + 7} of {ONE} is over: ada holds it under {token}"
        ):
            await say(world, "task-acked", role=Role.AGENT, token=token + 7)
        await say(world, "task-released", why="somebody else is to do it")
        assert task(world).status is Status.PENDING
        with pytest.raises(Refused, match="is over: it is pending"):
            await say(world, "task-acked", role=Role.AGENT, token=token)

    told(story)


def test_who_claims_again_gets_the_same_claim_and_never_a_second_one() -> None:
    async def story(world: World) -> None:
        await begun(world)
        token = await claim(world)
        assert [await claim(world) for _ in range(3)] == [token] * 3
        assert len(world.events("task-executing")) == 1
        with pytest.raises(
            Refused, match="is executing by ada"
        ):  # Pulse would start a second program under it
            await say(world, "task-executing", role=Role.DAEMON, agent="ada", lease_us=1)

    told(story)


def test_what_is_said_again_after_a_lost_answer_is_answered_again_and_recorded_once() -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert world.daemon is not None
        token = await claim(world)
        result = Draft(parse("task-acked", {"token": token, "result": "done"}), ONE, id="the-same")
        answers = [await world.daemon.gate.append(Role.AGENT, "ada", [result]) for _ in range(2)]
        assert [(one.event.id, one.existing) for (one,) in answers] == [
            ("the-same", False),
            ("the-same", True),
        ]
        assert len(world.events("task-acked")) == 1
        assert world.events("task-result-refused") == []
        with pytest.raises(Refused, match="is recorded with another content"):
            await world.daemon.gate.append(Role.AGENT, "bob", [result])

    told(story)


def test_agents_may_not_assign_or_close() -> None:
    async def story(world: World) -> None:
        await begun(world)
        for kind, data in (("task-assigned", {"agent": "ada"}), ("task-closed", {}), ("project-removed", {})):
            with pytest.raises(Refused, match="not by agents"):
                await say(world, kind, role=Role.AGENT, **data)

    told(story)


def test_a_task_that_waits_or_has_open_parts_or_is_anothers_cannot_be_claimed() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-created", OTHER, project="app", title="a part", parent=ONE)
        with pytest.raises(Refused, match=f"it waits for {OTHER}"):
            await claim(world)
        await say(world, "task-blockers-set", OTHER, blockers=["task_000003"][:0])
        await say(world, "task-created", "task_000003", project="app", title="last", blockers=[OTHER])
        with pytest.raises(Refused, match=f"it waits for {OTHER}"):
            await claim(world, subject="task_000003")
        path = f"{OTHER} would wait for itself: {OTHER} -> task_000003 -> {OTHER}"
        with pytest.raises(Refused, match=path):
            await say(world, "task-blockers-set", OTHER, blockers=["task_000003"])
        await say(world, "task-assigned", OTHER, agent="bob")
        with pytest.raises(Refused, match="it is assigned to bob"):
            await claim(world, subject=OTHER)
        await claim(world, "bob", OTHER)

    told(story)


def test_a_project_with_open_tasks_stays_and_keeps_their_columns() -> None:
    async def story(world: World) -> None:
        await begun(world)
        with pytest.raises(Refused, match="open tasks of app: 1; close them"):
            await say(world, "project-removed", "app")
        with pytest.raises(Refused, match="open tasks lie in Ready"):
            await say(world, "project-set", "app", columns=["To do", "Done"])
        with pytest.raises(Refused, match="named twice"):
            await say(world, "project-set", "other", columns=["Done", "Done"])
        with pytest.raises(Refused, match="'a b' is no name of a project"):
            await say(world, "project-set", "a b")
        with pytest.raises(Refused, match="no project 'other'; there are app"):
            await say(world, "project-removed", "other")
        await say(world, "task-closed")
        await say(world, "project-removed", "app")

    told(story)


def test_a_claim_ends_with_its_lease_and_a_late_result_is_refused() -> None:
    async def story(world: World) -> None:
        await begun(world)
        token = await claim(world, lease_us=10_000_000)
        await asyncio.sleep(8)
        await say(world, "task-heartbeat", role=Role.AGENT, token=token)
        await asyncio.sleep(8)
        assert task(world).token == token
        await asyncio.sleep(3)
        assert (task(world).status, task(world).attempts) == (Status.PENDING, 1)
        (released,) = world.events("task-released")
        assert '"expired":true' in released.data
        assert "ada has said nothing for 10 s" in released.data
        later = await claim(world, "bob")
        with pytest.raises(
            Refused, match=f"the claim {token} of {ONE} is over: bob holds it under {later} now"
        ):
            await say(world, "task-acked", role=Role.AGENT, actor="ada", token=token, result="all is well")
        (late,) = world.events("task-result-refused")
        assert (late.subject, late.actor, json.loads(late.data)) == (
            ONE,
            "ada",
            {"token": token, "said": "task-acked", "result": "all is well"},
        )
        assert task(world).token == later

    told(story)


def test_a_task_whose_claims_end_again_and_again_waits_for_a_person() -> None:
    async def story(world: World) -> None:
        await begun(world)
        for _ in range(2):
            await claim(world, lease_us=1_000_000)
            await asyncio.sleep(2)
        assert (task(world).status, task(world).attempts) == (Status.FAILED, 2)
        assert "ada has said nothing for 1 s; attempts: 2" in world.events("task-failed")[0].data
        await say(world, "task-retried")
        assert (task(world).status, task(world).attempts) == (Status.PENDING, 0)

    told(story, tasks={"attempts": 2})


def test_of_two_who_would_make_tasks_wait_for_each_other_at_once_one_is_refused() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-created", OTHER, project="app", title="another one")
        both = [
            say(world, "task-blockers-set", one, blockers=[other])
            for one, other in ((ONE, OTHER), (OTHER, ONE))
        ]
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(first, Event)
        assert isinstance(second, Refused)
        assert f"{OTHER} would wait for itself" in str(second)

    told(story)


def test_a_part_cannot_wait_for_what_it_is_a_part_of() -> None:
    async def story(world: World) -> None:
        await begun(world)
        with pytest.raises(Refused, match=f"{ONE} would wait for itself: {ONE} -> {OTHER} -> {ONE}"):
            await say(world, "task-created", OTHER, project="app", title="a part", parent=ONE, blockers=[ONE])
        await say(world, "task-created", OTHER, project="app", title="a part", parent=ONE)
        with pytest.raises(Refused, match=f"{OTHER} would wait for itself"):
            await say(world, "task-blockers-set", OTHER, blockers=[ONE])
        await say(world, "task-given-up", OTHER)  # a person may want it after all
        await say(world, "task-created", "task_000003", project="app", title="another one")
        await say(world, "task-blockers-set", "task_000003", blockers=[ONE])
        path = f"{ONE} would wait for itself: {ONE} -> task_000003 -> {ONE}"
        with pytest.raises(Refused, match=path):
            await say(world, "task-blockers-set", blockers=["task_000003"])
        path = f"{ONE} would wait for itself: {ONE} -> task_000004 -> task_000003 -> {ONE}"
        with pytest.raises(Refused, match=path):
            await say(
                world, "task-created", "task_000004", project="app", title="another part", parent=ONE,
                blockers=["task_000003"],
            )  # fmt: skip

    told(story)


def test_a_task_of_a_project_that_is_no_more_is_not_retried() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-given-up")
        await say(world, "project-removed", "app")
        with pytest.raises(Refused, match="no project 'app': there is none yet"):
            await say(world, "task-retried")

    told(story)


def test_of_two_who_retry_a_task_and_remove_its_project_at_once_one_is_refused() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-given-up")
        both = say(world, "task-retried"), say(world, "project-removed", "app")
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(first, Event)
        assert isinstance(second, Refused)
        assert "open tasks of app: 1" in str(second)

    told(story)


def test_parts_lie_so_deep_in_each_other_and_no_deeper() -> None:
    async def story(world: World) -> None:
        await begun(world)
        ids = [ONE, *(f"task_{number:06}" for number in range(100, 101 + DEEPEST))]
        for parent, part in pairwise(ids[:-1]):
            await say(world, "task-created", part, project="app", title="a part", parent=parent)
        with pytest.raises(Refused, match=f"{ids[-2]} is {DEEPEST} parts deep"):
            await say(world, "task-created", ids[-1], project="app", title="a part", parent=ids[-2])

    told(story)


def test_what_is_done_is_closed_unless_a_person_reviews_it() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "project-set", "careful", review=True)
        await say(world, "task-created", OTHER, project="careful", title="look twice")
        for id_ in (ONE, OTHER):
            await say(
                world, "task-acked", id_, Role.AGENT, token=await claim(world, subject=id_), result="done"
            )
        await asyncio.sleep(1)
        assert (task(world).status, task(world, OTHER).status) == (Status.CLOSED, Status.ACKED)
        assert [event.actor for event in world.events("task-closed")] == ["pulse"]

    told(story)


def test_a_rules_wish_makes_one_task_for_its_key_while_that_is_open() -> None:
    async def story(world: World) -> None:
        await begun(world)
        wish = Effect(
            action="create-task", key="create-task:leak", params={"project": "app", "title": "a leak"}
        )
        for _ in range(2):
            await world.ask(wish)
            await asyncio.sleep(1)
        created = [event for event in world.events("task-created") if "leak" in event.data]
        assert len(created) == 1
        await say(world, "task-closed", created[0].subject)
        await world.ask(wish)
        await asyncio.sleep(1)
        assert len([event for event in world.events("task-created") if "leak" in event.data]) == 2
        await world.ask(wish.model_copy(update={"params": {"project": "none", "title": "x"}, "key": "k"}))
        await asyncio.sleep(1)
        assert "no project 'none'" in world.events("effect-failed")[-1].data

    told(story)


def test_a_condition_that_stays_becomes_a_task_where_the_settings_want_it() -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert world.daemon is not None
        raised = Draft(ConditionRaised(evidence="97 % full", state="high"), "disk:/srv")
        await world.daemon.gate.append(Role.DAEMON, "pulse", [raised])
        await asyncio.sleep(290)
        assert len(world.events("task-created")) == 1
        await asyncio.sleep(20)
        made = world.events("task-created")[-1]
        first = iso(world.events("condition-raised", subject="disk:/srv")[0].moment.at)[:19].replace("T", " ")
        assert json.loads(made.data)["title"] == f"disk:/srv went wrong, first seen {first} UTC"
        prompt = json.loads(made.data)["prompt"]  # which is read when it may be over
        assert prompt.startswith("The condition disk:/srv was raised. Look whether it stands, ")
        assert f"{DATA}\n\n```\n97 % full\n" in json.loads(made.data)["prompt"]
        await asyncio.sleep(600)
        await say(world, "task-closed", made.subject)
        await asyncio.sleep(600)
        assert len(world.events("task-created")) == 2  # no other one of the same condition
        for number in range(1_001):  # nor once so much was done since that nobody knows when it was made
            await world.ask(Effect(action="note", key=f"note:{number}"))
        await asyncio.sleep(600)
        assert "create-task:condition:disk:/srv" not in world.daemon.parts.view().effects.settled_at
        assert len(world.events("task-created")) == 2
        cleared = Draft(ConditionCleared(evidence="room"), "disk:/srv")
        await world.daemon.gate.append(Role.DAEMON, "pulse", [cleared])

    told(story, tasks={"for_conditions": "5m", "project": "app"})


@pytest.mark.parametrize("unwatched", [False, True])
def test_a_task_of_a_condition_is_closed_once_that_is_over_unless_somebody_works_on_it(
    unwatched: bool,
) -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert world.daemon is not None
        for name in ("disk:/srv", "memory"):
            raised = Draft(ConditionRaised(evidence="97 % full", state="high"), name)
            await world.daemon.gate.append(Role.DAEMON, "pulse", [raised])
        await asyncio.sleep(310)
        _, of_disk, of_memory = (event.subject for event in world.events("task-created"))
        await claim(world, subject=of_memory, lease_us=3_600_000_000)
        for name in ("disk:/srv", "memory"):
            cleared = Draft(ConditionCleared(evidence="nobody looks any more", unwatched=unwatched), name)
            await world.daemon.gate.append(Role.DAEMON, "pulse", [cleared])
        await asyncio.sleep(10)
        assert task(world, of_disk).status is (Status.PENDING if unwatched else Status.CLOSED)
        assert task(world, of_memory).status is Status.EXECUTING
        assert [json.loads(event.data)["why"] for event in world.events("task-closed")] == (
            [] if unwatched else ["disk:/srv is over, and nobody works on it"]
        )
        assert not world.events("effect-failed")

    told(story, tasks={"for_conditions": "5m", "project": "app"})


def test_a_condition_becomes_a_task_once_there_is_the_project_for_it() -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert world.daemon is not None
        raised = Draft(ConditionRaised(evidence="97 % full", state="high"), "disk:/srv")
        await world.daemon.gate.append(Role.DAEMON, "pulse", [raised])
        await asyncio.sleep(600)
        assert len(world.events("task-created")) == 1
        assert not world.events("effect", subject="create-task:condition:disk:/srv")
        await say(world, "project-set", "ops")
        await asyncio.sleep(20)
        assert len(world.events("task-created")) == 2

    told(story, tasks={"for_conditions": "5m", "project": "ops"})


def test_an_effect_assigns_a_task_and_one_that_gives_it_to_nobody_leaves_it() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-created", OTHER, project="app", title="not yet")
        wishes = [
            Effect(
                action="assign-task",
                key=f"assign-task:{id_}",
                params={"task": id_, "agent": agent, "why": why},
            )
            for id_, agent, why in ((ONE, "ada", "she knows it"), (OTHER, "", "nobody until Monday"))
        ]
        for wish in wishes:
            await world.ask(wish)
        await asyncio.sleep(1)
        assert (task(world).status, task(world).agent) == (Status.ASSIGNED, "ada")
        assert task(world, OTHER).status is Status.PENDING
        (assigned,) = world.events("task-assigned")
        wished = world.events("effect", subject=f"assign-task:{ONE}")[0]
        assert (assigned.actor, assigned.cause) == ("pulse", wished.id)
        assert "she knows it" in assigned.data

    told(story)


def test_of_two_who_would_assign_a_task_only_one_may_and_it_is_said() -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert world.daemon is not None
        await world.ask(Paused())  # so that the first effect stays open
        params = {"task": ONE, "agent": ""}
        await world.ask(Effect(action="assign-task", key="veto", params=params))
        with pytest.raises(Refused, match=f"assign-task of {ONE!r} is under way already"):
            await world.ask(Effect(action="assign-task", key="other", params={**params, "agent": "ada"}))

    told(story)


@pytest.mark.parametrize("deaths", range(4))
def test_whenever_the_daemon_dies_a_claim_holds_is_heard_of_or_ends_and_no_attempt_is_forgotten(
    deaths: int,
) -> None:
    """It dies before the claim, with it held, with a late heartbeat, or once the result is there."""

    async def story(world: World) -> None:
        await begun(world)

        async def die(turn: int, seconds: float = 0) -> None:
            if turn == deaths:
                await world.crash()
                await asyncio.sleep(seconds)
                await world.start()

        await die(0)
        token = await claim(world, lease_us=60_000_000)
        await die(1, 30)
        assert (task(world).token, task(world).attempts) == (token, 1)
        await asyncio.sleep(20)
        await die(2, 45)  # its lease ends meanwhile
        await asyncio.sleep(1)
        if deaths == 2:
            assert (task(world).status, task(world).attempts) == (Status.PENDING, 1)
            with pytest.raises(Refused, match="is over: it is pending"):
                await say(world, "task-acked", role=Role.AGENT, token=token, result="late")
            assert len(world.events("task-result-refused")) == 1
            token = await claim(world, "bob")
            assert task(world).attempts == 2
        await say(world, "task-acked", role=Role.AGENT, token=token, result="done")
        await die(3)
        await asyncio.sleep(1)
        assert (task(world).status, task(world).result) == (Status.CLOSED, "done")
        assert len(world.events("task-acked")) == len(world.events("task-closed")) == 1

    told(story)


def test_many_open_tasks_are_not_written_with_each_tick_and_few_are() -> None:
    log = TaskLog()
    log.create()
    few = Snapshot(1, EARLY, state=State(parts={TASKS.name: log.state}))
    assert ONE in json.loads("".join(encode_snapshot(few)))["projected"][TASKS.name]["tasks"]
    for number in range(FEW):
        log.create(f"task_x{number:06}")
    many = Snapshot(1, EARLY, state=State(parts={TASKS.name: log.state}))
    assert TASKS.name not in json.loads("".join(encode_snapshot(many)))["projected"]
