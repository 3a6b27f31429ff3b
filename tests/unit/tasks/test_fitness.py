"""One answer to what an agent may do: of what is listed as ready, what is assigned, and what a claim is taken for."""

import asyncio
from typing import Any

import pytest

from pulse_core.agents.assignment import plan
from pulse_core.model.errors import Refused
from pulse_core.model.payload import Role
from pulse_core.projections.state import Snapshot
from pulse_core.tasks.fitness import ready_tasks
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import Status
from tests.simulation.world import World
from tests.unit.tasks.test_tasks_in_a_daemon import ONE, begun, claim, say, task, told

ADA: dict[str, Any] = {
    "name": "ada",
    "command": ["a"],
    "labels": ["go"],
    "columns": ["Ready"],
    "projects": ["app"],
}
UNFIT = [
    ({"column": "Backlog"}, {}, "ada does nothing of the column Backlog"),
    ({"column": "Done"}, {}, "ada does nothing of the column Done"),
    ({"labels": ["python"]}, {}, "ada can't do python"),
    ({}, {"members": ["bob"]}, "ada is no member of app; its members are bob"),
    ({"project": "other"}, {}, "ada does nothing of other"),
]


def ready(world: World, agent: str) -> list[str]:
    assert world.daemon is not None
    tasks = world.daemon.parts.view().of(TASKS)
    return [one.id for one in ready_tasks(tasks, agent, world.settings, world.clock.now())]


def planned(world: World) -> list[str]:
    assert world.daemon is not None
    state = world.daemon.parts.view()
    return [one.task.id for one in plan(Snapshot(1, world.clock.now(), world.settings, state=state))[0]]


@pytest.mark.parametrize(("made", "project", "words"), [({}, {}, ""), *UNFIT])
def test_what_an_agent_may_not_do_is_neither_ready_nor_assigned_nor_claimed(
    made: dict[str, Any], project: dict[str, Any], words: str
) -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-closed")
        await say(world, "project-set", "app", **project)
        await say(world, "project-set", "other")
        await say(world, "task-created", "task_000002", **{"project": "app", "title": "mend it", **made})
        expected = [] if words else ["task_000002"]
        assert ready(world, "ada") == planned(world) == expected
        for role in (Role.AGENT, Role.PERSON):
            if words:
                with pytest.raises(Refused, match=f"can't be claimed: {words}"):
                    await say(world, "task-executing", "task_000002", role, agent="ada", lease_us=60_000_000)
        if not words:
            await claim(world, subject="task_000002")

    told(story, agent=[ADA], agents={"assign": False})


def test_who_is_no_agent_of_the_settings_does_what_lies_in_ready_or_failed_before() -> None:
    async def story(world: World) -> None:
        await begun(world)
        assert ready(world, "eve") == [ONE]
        token = await claim(world, "eve")
        await say(world, "task-failed", role=Role.AGENT, token=token, error="no", retry_us=0)
        await say(world, "task-moved", column="In progress")
        assert ready(world, "eve") == [ONE]
        for column in ("Backlog", "Review", "Test", "Done"):
            await say(world, "task-moved", column=column)
            assert ready(world, "eve") == []
            with pytest.raises(Refused, match=f"eve does nothing of the column {column}"):
                await claim(world, "eve")

    told(story)


def test_of_a_project_with_other_columns_all_but_the_last_are_worked_in() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-closed")
        await say(world, "project-set", "app", columns=["To do", "Finished"])
        await say(world, "task-created", "task_000002", project="app", title="mend it", column="To do")
        assert ready(world, "eve") == ["task_000002"]
        await say(world, "task-moved", "task_000002", column="Finished")
        assert ready(world, "eve") == []
        await say(world, "project-set", "app", columns=["Finished"])
        assert ready(world, "eve") == ["task_000002"]

    told(story)


def test_whom_a_person_assigns_a_task_may_do_it_wherever_it_lies_and_whatever_it_needs() -> None:
    async def story(world: World) -> None:
        await begun(world)
        await say(world, "task-moved", column="Backlog")
        await say(world, "task-assigned", agent="ada")
        assert (ready(world, "ada"), ready(world, "eve")) == ([ONE], [])
        await claim(world)
        await asyncio.sleep(1)
        assert task(world).status is Status.EXECUTING

    told(story, agent=[{**ADA, "projects": ["other"]}], agents={"assign": False})
