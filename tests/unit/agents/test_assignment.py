"""Which task goes to whom, and why: by what an agent can do, its load, how it has done, and what waits longest."""

from dataclasses import replace
from typing import Any

import pytest

from pulse_core.agents import assignment
from pulse_core.agents.assignment import obstacles_of, plan
from pulse_core.agents.projection import RUNS, AgentRuns
from pulse_core.composition import FOLD, Settings
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.projections.state import Snapshot, State
from pulse_core.tasks.fitness import unfitness
from pulse_core.tasks.projection import TASKS, PendingTasks
from pulse_core.tasks.stats import STATS, AgentCapabilityStats, AgentStats, LabelStats
from pulse_core.tasks.task import Project, Status, TaskState
from tests.events import event

HOUR = 3_600_000_000
NOW = Moment(1_800_000_000_000_000, "boot", 100 * HOUR)


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": ["a"], **more}


def task(number: int, hours: int = 0, **more: Any) -> TaskState:
    return TaskState(f"task_{number:06}", "app", "mend it", NOW.plus(-hours * HOUR), "eve", **more)


def seen(
    agents: list[dict[str, Any]],
    tasks: list[TaskState],
    stats: dict[str, AgentStats] | None = None,
    runs: AgentRuns | None = None,
    project: Project | None = None,
    **general: Any,
) -> Snapshot:
    values = {
        TASKS.name: PendingTasks({one.id: one for one in tasks}, projects={"app": project or Project()}),
        STATS.name: AgentCapabilityStats(stats or {}),
        RUNS.name: runs or AgentRuns(),
    }
    settings = Settings.model_validate({"agent": agents, "agents": general})
    return Snapshot(1, NOW, settings, state=State().with_values(values, 1))


def given_to(curr: Snapshot) -> dict[str, str]:
    """The names of agents by the numbers of tasks."""
    return {one.task.id[-1]: one.agent.name for one in plan(curr)[0]}


def words(curr: Snapshot) -> list[str]:
    return list(obstacles_of(plan(curr)[1], curr))


@pytest.mark.parametrize(
    ("bob", "one", "project", "obstacle"),
    [
        ({"labels": ["go"]}, {"labels": ("python", "go")}, Project(), "can't do python"),
        ({"columns": ["Test"]}, {}, Project(), "does nothing of the column Ready"),
        ({"projects": ["other"]}, {}, Project(), "does nothing of app"),
        ({}, {}, Project(members=("ada",)), "is no member of app; its members are ada"),
    ],
)
def test_an_agent_gets_what_it_can_do_and_may(
    bob: dict[str, Any], one: dict[str, Any], project: Project, obstacle: str
) -> None:
    both = [agent("bob", **bob), agent("ada")]
    assert given_to(seen(both, [task(1, **one)], project=project)) == {"1": "ada"}
    assert words(seen(both[:1], [task(1, **one)], project=project)) == [
        f"task_000001 goes to nobody: bob {obstacle}"
    ]


def test_who_can_do_anything_is_not_kept_from_labels() -> None:
    assert given_to(seen([agent("ada")], [task(1, labels=("python",))])) == {"1": "ada"}


def test_the_load_is_shared_and_bounded() -> None:
    curr = seen([agent("ada", concurrency=2), agent("bob")], [task(number) for number in range(5)])
    assert given_to(curr) == {"0": "ada", "1": "bob", "2": "ada"}
    held = task(9, status=Status.EXECUTING, agent="ada", token=3)
    curr = seen([agent("ada")], [held, task(1)])
    assert words(curr) == ["task_000001 goes to nobody: ada has 1 task already"]


def test_what_is_about_to_begin_counts_as_a_task_that_the_agent_has() -> None:
    params = {"task": "task_000001", "agent": "ada"}
    wish = event(1, Effect(action="run-agent", key="run-agent:task_000001:0", params=params), "run")
    curr = seen([agent("ada")], [task(1), task(2)])
    assert given_to(curr) == {"1": "ada"}
    curr = replace(curr, state=replace(curr.state, effects=FOLD(FOLD.start, [wish]).effects))
    assert given_to(curr) == {}
    assert words(curr) == ["task_000002 goes to nobody: ada has 1 task already"]


def test_a_wish_of_a_newer_version_keeps_nobody_from_tasks() -> None:
    params = {"task": "task_000001", "agent": "ada"}
    wish = event(1, Effect(action="run-agent", key="run-agent:task_000001:0", params=params), "run")
    newer = wish._replace(data=wish.data[:-1] + ',"of_a_newer_version":1}')
    curr = seen([agent("ada", concurrency=2), agent("bob")], [task(1), task(2)])
    curr = replace(curr, state=replace(curr.state, effects=FOLD(FOLD.start, [newer]).effects))
    assert given_to(curr) == {"2": "bob"}


def test_who_has_done_better_with_such_tasks_is_preferred() -> None:
    stats = {
        "ada": AgentStats(closed=9, labels={"go": LabelStats(closed=1, failed=4)}),
        "bob": AgentStats(closed=1, failed=3, labels={"go": LabelStats(closed=3)}),
    }
    both = [agent("ada"), agent("bob")]
    assert given_to(seen(both, [task(1, labels=("go",))], stats)) == {"1": "bob"}
    assert given_to(seen(both, [task(1)], stats)) == {"1": "ada"}
    (one,) = plan(seen(both, [task(1, labels=("go",))], stats))[0]
    assert one.why == "bob has 0 tasks, and may have 1; can do go; closed 1 and failed 3; 1 more could do it"


def test_priority_comes_first_then_age_and_waiting_adds_to_priority() -> None:
    tasks = [task(1, 0, priority=2), task(2, 1), task(3, 3), task(4, 3)]
    assert list(given_to(seen([agent("ada", concurrency=9)], tasks))) == ["3", "4", "1", "2"]
    assert list(given_to(seen([agent("ada", concurrency=9)], tasks, aging=0))) == ["1", "3", "4", "2"]


@pytest.mark.parametrize(
    "one",
    [
        task(1, status=Status.BLOCKED),
        task(1, status=Status.FAILED),
        task(1, status=Status.ACKED),
        task(1, waits_for=("task_000002",)),
        task(1, attempts=3),
        task(1, since=NOW, retry_us=HOUR),
    ],
    ids=lambda one: f"{one.status}-{one.attempts}-{one.retry_us}",
)
def test_what_is_not_ready_goes_to_nobody(one: TaskState) -> None:
    assert plan(seen([agent("ada")], [one])) == ([], [])


def test_who_is_paused_or_set_aside_gets_nothing_and_on_trial_one_task() -> None:
    paused = AgentRuns(paused={"ada": NOW})
    assert words(seen([agent("ada")], [task(1)], runs=paused)) == [
        "task_000001 goes to nobody: ada is paused by a person"
    ]
    tasks, many = [task(1), task(2)], [agent("ada", concurrency=5)]

    def failed(hours_ago: float, failures: int = 3) -> dict[str, AgentStats]:
        at = NOW.plus(-round(hours_ago * HOUR))
        return {"ada": AgentStats(consecutive_failures=failures, failed_at=at)}

    assert len(given_to(seen(many, tasks, failed(0, 2)))) == 2
    (first, _) = words(seen(many, tasks, failed(0.1)))
    assert first == "task_000001 goes to nobody: ada is set aside for 4 min after 3 failures in a row"
    (once, _) = words(seen(many, tasks, failed(0.1, 1), failures=1))
    assert once.endswith("set aside for 4 min after 1 failure in a row")
    assert len(given_to(seen(many, tasks, failed(0.2)))) == 1
    assert given_to(seen(many, tasks, failed(0.2, 4))) == {}
    resumed = AgentRuns(resumed={"ada": NOW})
    assert len(given_to(seen(many, tasks, failed(0.1), resumed))) == 2


def test_of_many_that_wait_only_the_first_are_told_of() -> None:
    told = words(seen([agent("ada", labels=["go"])], [task(n, labels=("c",)) for n in range(8)]))
    assert (len(told), told[-1]) == (6, "3 more tasks go to nobody")


def test_thousands_of_tasks_that_want_the_same_are_held_against_an_agent_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, look = list[str](), unfitness
    monkeypatch.setattr(
        assignment, "unfitness", lambda one, *more: asked.append(one.name) or look(one, *more)
    )
    tasks = [task(number, labels=("go",)) for number in range(3_000)]
    curr = seen([agent("ada", concurrency=2, labels=["go"]), agent("bob", labels=["python"])], tasks)
    given, waiting = plan(curr)
    assert ([one.agent.name for one in given], len(waiting)) == (["ada", "ada"], 2_998)
    assert asked == ["ada", "bob", "bob"]  # anew once nobody has room
