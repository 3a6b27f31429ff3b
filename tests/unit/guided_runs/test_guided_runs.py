"""Which runs are held, when, and how often."""

from typing import Any

import pytest

from pulse_core.guidance.protocol import make_event_id
from pulse_core.guided_runs.rules import hold_unguided_runs
from pulse_core.testing import Story, given

ROOT, RUN, TASK = "/srv/app", "run-1", "task_000001"
FIRST, SECOND = (f"0000000{number}" for number in (1, 2))


def story(then: str = "pause", workspace: str = "", repository: str = ROOT) -> Story:
    """A run in a project whose guidance nobody has changed yet."""
    told = given(hold_unguided_runs, settings={"guided_runs": {"after": "10m", "then": then}})
    told.happened("guidance-initialized", ROOT, hashes={})
    told.happened("project-set", "app", repository=repository)
    told.happened("task-created", TASK, project="app", title="Mend it")
    run: dict[str, Any] = {"run": RUN, "agent": "ada", "token": 1, "pid": 1, "started": 1}
    told.happened("agent-run-started", TASK, **run, workspace=workspace)
    return told


def change(told: Story, digits: str = FIRST) -> str:
    """A change of the guidance; its id."""
    number = int(digits)
    id_ = make_event_id(told.now.at, digits)
    data = {"number": number, "event_id": id_, "file": "guidance.md", "sha256": digits * 8, "size": 1}
    told.happened("guidance-changed", ROOT, **data, change="created" if number == 1 else "modified")
    return id_


@pytest.mark.parametrize(("then", "action"), [("pause", "pause-agent-run"), ("stop", "stop-agent-run")])
def test_a_run_is_held_once_for_each_change_that_it_does_not_acknowledge(then: str, action: str) -> None:
    told = story(then)
    id_ = change(told)
    told.tick()
    told.expect_nothing()
    assert told.verdict.tick_ms == 10 * 60_000 + 1
    told.after("10m").tick()
    effect = told.expect(action, key=f"{action}:{RUN}:{id_}")
    assert "guidance.md in /srv/app/.pulse changed, and it has not acknowledged that in 10 min" in str(
        effect.reason
    )
    told.begun(effect.key)
    told.acked(effect.key)
    told.after("1h").tick()
    told.expect_nothing()
    again = change(told, SECOND)
    told.after("11m").tick()
    told.expect(action, key=f"{action}:{RUN}:{again}")


def test_people_are_told_once_for_each_change_which_run_goes_on_by_old_guidance() -> None:
    told = story("remind")
    id_ = change(told)
    told.after("10m").tick()
    notice = told.expect("notify", key=f"notify:guided-run:{RUN}:{id_}")
    for name in (RUN, TASK, "ada", "guidance.md"):
        assert name in str(notice.params["text"])
    told.begun(notice.key)
    told.acked(notice.key)
    told.after("1h").tick()
    told.expect_nothing()
    again = change(told, SECOND)
    told.after("11m").tick()
    told.expect("notify", key=f"notify:guided-run:{RUN}:{again}")


def test_a_run_that_was_held_goes_on_once_the_change_is_acknowledged() -> None:
    told = story()
    id_ = change(told)
    told.after("10m").tick()
    told.happened("agent-run-paused", TASK, run=RUN, why=told.expect("pause-agent-run").params["why"])
    told.after("1h").tick()
    told.expect_nothing()
    told.happened("guidance-acknowledged", ROOT, event_id=id_)
    told.tick()
    params = told.expect("pause-agent-run").params
    assert (params["run"], params["over"]) == (RUN, True)


def test_a_run_that_was_held_for_something_else_waits_for_a_person() -> None:
    told = story()
    id_ = change(told)
    told.happened("agent-run-paused", TASK, run=RUN, why="too many turns")
    told.happened("guidance-acknowledged", ROOT, event_id=id_)
    told.tick()
    told.expect_nothing()


def test_who_acknowledges_in_time_goes_on() -> None:
    told = story()
    id_ = change(told)
    told.after("9m").happened("guidance-acknowledged", ROOT, event_id=id_)
    told.after("1h").tick()
    told.expect_nothing()


@pytest.mark.parametrize(
    ("workspace", "repository", "is_held"),
    [("/srv/app/sub", "", True), ("/srv/application", "", False), ("", "", False), ("/w/1", ROOT, True)],
)
def test_a_run_elsewhere_goes_on(workspace: str, repository: str, is_held: bool) -> None:
    told = story(workspace=workspace, repository=repository)
    change(told)
    told.after("10m").tick()
    assert bool(told.emitted) == is_held


def test_a_run_that_is_held_already_is_left_alone() -> None:
    told = story()
    change(told)
    told.happened("agent-run-paused", TASK, run=RUN, why="too many turns")
    told.after("10m").tick()
    told.expect_nothing()


def test_who_does_not_want_it_has_nobody_held() -> None:
    told = given(hold_unguided_runs)
    told.happened("guidance-initialized", ROOT, hashes={})
    change(told)
    told.after("10d").tick()
    told.expect_nothing()
