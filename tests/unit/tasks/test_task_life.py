"""The life of a task: every event in every status, and what follows of it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.tasks.events import KINDS, LONGEST_PROMPT, TaskCreated, TaskPullRequestOpened
from pulse_core.tasks.listing import task_json, task_of
from pulse_core.tasks.projection import REMEMBERED, TASKS, PendingTasks, after
from pulse_core.tasks.task import MOVES, Project, Status, TaskState
from tests.unit.tasks.task_events import ONE, OTHER, THIRD, TaskLog
from upulse_cli.capabilities.tasks.views import FEW_WORDS, note
from upulse_cli.time_args import local

PATHS: dict[Status, tuple[str, ...]] = {
    Status.PENDING: (),
    Status.ASSIGNED: ("task-assigned",),
    Status.EXECUTING: ("task-executing",),
    Status.ACKED: ("task-executing", "task-acked"),
    Status.FAILED: ("task-executing", "task-failed"),
    Status.BLOCKED: ("task-blocked",),
    Status.CLOSED: ("task-closed",),
    Status.GIVEN_UP: ("task-given-up",),
}
OF_TASKS = sorted(
    kind.kind
    for kind in KINDS
    if kind.kind.startswith("task-") and kind not in (TaskCreated, TaskPullRequestOpened)
)


def data_for(kind: str, log: TaskLog) -> dict[str, Any]:
    """What an event of this kind needs to say now."""
    token = log.task().token
    needed: dict[str, dict[str, Any]] = {
        "task-assigned": {"agent": "ada"},
        "task-executing": {"agent": "ada", "lease_us": 60_000_000},
        "task-heartbeat": {"token": token or 1},
        "task-acked": {"token": token or 1, "result": "done"},
        "task-failed": {"token": token or 1, "error": "no"},
        "task-result-refused": {"token": 1, "said": "task-acked"},
        "task-blocked": {"why": "a question"},
        "task-moved": {"column": "Test"},
        "task-blockers-set": {"blockers": []},
    }
    return needed.get(kind, {})


def in_status(status: Status) -> TaskLog:
    log = TaskLog()
    log.create()
    for kind in PATHS[status]:
        log.say(kind, **data_for(kind, log))
    assert log.task().status is status
    return log


@pytest.mark.parametrize("status", Status)
def test_every_event_in_every_status_is_in_the_table_or_changes_nothing(status: Status) -> None:
    for kind in OF_TASKS:
        log = in_status(status)
        before = log.state
        log.say(kind, **data_for(kind, log))
        if kind not in MOVES[status]:
            assert log.state == before, kind
            continue
        expected = MOVES[status][kind] or status
        assert log.task().status is (Status.FAILED if kind == "task-failed" else expected), kind
        assert (ONE in log.state.ended) == (log.task().status in (Status.CLOSED, Status.GIVEN_UP)), kind
        assert (ONE in log.state.tasks) != (ONE in log.state.ended), kind


def test_a_claim_has_the_row_as_token_counts_as_attempt_and_ends_with_its_lease() -> None:
    log = TaskLog()
    log.create()
    token = log.claim(lease_us=5_000_000)
    task = log.task()
    assert (task.token, task.attempts, task.agent, task.column) == (token, 1, "ada", "In progress")
    last = log.events[-1].moment
    assert task.lease_left(last.plus(1_000_000)) == 4_000_000
    log.say("task-heartbeat", token=token)
    assert log.task().lease_left(last.plus(1_000_000)) == 5_000_000
    assert log.task().lease_left(last.plus(6_000_000)) == 0
    log.say("task-released", token=token, expired=True, why="silent")
    assert (log.task().status, log.task().token, log.task().agent) == (Status.PENDING, 0, "")
    assert log.task().lease_left(last) is None


@pytest.mark.parametrize(
    "kind", ["task-heartbeat", "task-acked", "task-failed", "task-released", "task-given-up"]
)
def test_what_is_said_under_an_earlier_claim_changes_nothing(kind: str) -> None:
    log = TaskLog()
    log.create()
    late = {**data_for(kind, log), "token": log.claim()}
    log.say("task-released", token=late["token"])
    log.claim(agent="bob")
    before = log.task()
    log.say(kind, **late)
    assert log.task() == before


def test_a_failure_with_a_retry_is_pending_again_after_a_while_and_one_without_waits_for_a_person() -> None:
    log = TaskLog()
    log.create()
    log.say("task-failed", token=log.claim(), error="no disk", retry_us=5_000_000)
    task, now = log.task(), log.events[-1].moment
    assert (task.status, task.error, task.retry_left(now)) == (Status.PENDING, "no disk", 5_000_000)
    assert task.retry_left(now.plus(5_000_000)) == 0
    log.say("task-failed", token=log.claim(), error="no disk")
    assert (log.task().status, log.task().attempts) == (Status.FAILED, 2)
    log.say("task-retried")
    assert (log.task().status, log.task().attempts, log.task().error) == (Status.PENDING, 0, "")


def test_who_waits_for_a_task_goes_on_when_it_is_closed_and_not_when_it_is_given_up() -> None:
    log = TaskLog()
    log.create(ONE)
    log.create(OTHER)
    log.create(THIRD, blockers=(ONE, OTHER))
    log.say("task-closed", ONE)
    assert log.task(THIRD).waits_for == (OTHER,)
    assert (log.task(THIRD).stuck_on, log.task(THIRD).standing) == ((), Status.PENDING)
    log.say("task-given-up", OTHER)
    assert (log.task(THIRD).waits_for, log.task(THIRD).stuck_on) == ((OTHER,), (OTHER,))
    assert log.task(THIRD).standing is Status.BLOCKED
    log.say("task-retried", OTHER)
    assert (log.task(THIRD).stuck_on, log.task(THIRD).standing) == ((), Status.PENDING)
    log.say("task-closed", OTHER)
    assert (log.task(THIRD).waits_for, log.task(THIRD).blockers) == ((), (ONE, OTHER))
    log.say("task-blockers-set", THIRD, blockers=[ONE])
    assert log.task(THIRD).waits_for == ()


def test_who_waits_for_a_failed_task_is_blocked_until_it_is_tried_again() -> None:
    log = TaskLog()
    log.create(ONE)
    log.say("task-failed", ONE, token=log.claim(), error="no")
    log.create(OTHER, blockers=(ONE,))
    assert log.task(OTHER).standing is Status.BLOCKED
    log.say("task-retried", ONE)
    assert log.task(OTHER).standing is Status.PENDING
    log.say("task-given-up", OTHER)
    log.say("task-closed", ONE)
    log.say("task-retried", OTHER)
    assert (log.task(OTHER).standing, log.task(OTHER).waits_for) == (Status.PENDING, ())


def test_what_holds_up_a_task_holds_up_all_that_wait_for_it_until_it_is_tried_again() -> None:
    """THIRD is a part of OTHER, which LAST waits for; and THIRD waits for ONE."""
    log, last = TaskLog(), "task_000004"
    log.create(ONE)
    log.create(OTHER)
    log.create(last, blockers=(OTHER,))
    log.create(THIRD, parent=OTHER, blockers=(ONE,))

    def standings() -> list[str]:
        return [str(log.task(id_).standing) for id_ in (THIRD, OTHER, last)]

    assert (log.task(OTHER).parts, log.task(OTHER).waits_for) == ((THIRD,), (THIRD,))
    for kind in ("task-failed", "task-blocked", "task-given-up"):
        log.claim()
        log.say(kind, ONE, **data_for(kind, log))
        assert standings() == ["blocked"] * 3
        assert log.task(last).stuck_on == (OTHER,)
        log.say("task-retried", ONE)
        assert standings() == ["pending"] * 3
    log.say("task-given-up", THIRD)
    assert standings()[1:] == ["blocked"] * 2
    log.say("task-closed", THIRD)  # it needs not be done
    assert (standings()[1:], log.task(OTHER).parts) == (["pending"] * 2, ())
    log.say("task-blockers-set", OTHER, blockers=[ONE])
    log.say("task-given-up", ONE)
    assert standings()[1:] == ["blocked"] * 2
    log.say("task-blockers-set", OTHER)
    assert standings()[1:] == ["pending"] * 2
    log.say("task-closed", OTHER)
    assert log.task(last).waits_for == ()


def test_what_was_given_up_is_remembered_for_as_long_as_something_waits_for_it() -> None:
    log = TaskLog()
    log.create(ONE)
    log.create(THIRD)
    log.create(OTHER, blockers=(ONE, THIRD))
    log.say("task-given-up", ONE)
    for number in range(REMEMBERED):
        log.create(f"task_x{number:06}")
        log.say("task-closed", f"task_x{number:06}")
    log.say("task-closed", THIRD)
    assert (log.task(OTHER).waits_for, log.task(OTHER).stuck_on) == ((ONE,), (ONE,))
    log.say("task-closed", ONE)
    assert log.task(OTHER).waits_for == ()
    assert len(log.state.ended) == REMEMBERED


def test_columns_follow_the_status_where_the_project_has_them() -> None:
    log = TaskLog(columns=["To do", "Review", "Finished"])
    log.create(column="To do")
    token = log.claim()
    assert log.task().column == "To do"
    log.say("task-acked", token=token)
    assert log.task().column == "Review"
    log.say("task-closed")
    assert log.task().column == "Finished"


def test_a_task_that_is_to_be_done_again_lies_where_it_was_claimed_from_unless_it_was_moved() -> None:
    log = TaskLog()
    log.create(column="Backlog")
    log.say("task-released", token=log.claim())
    assert log.task().column == "Backlog"
    log.say("task-acked", token=log.claim())
    log.say("task-retried")
    assert log.task().column == "Backlog"
    token = log.claim()
    log.say("task-moved", column="Test")
    log.say("task-failed", token=token, error="no", retry_us=0)
    assert log.task().column == "Test"
    log.say("task-given-up")
    log.say("task-retried")
    assert log.task().column == "Test"


def test_ended_tasks_are_bounded_and_closed_ones_lose_their_prompt() -> None:
    log = TaskLog()
    for number in range(REMEMBERED + 3):
        log.create(f"task_{number:06}", prompt="p" * LONGEST_PROMPT)
        log.say("task-closed", f"task_{number:06}")
    assert (len(log.state.ended), len(log.state.tasks)) == (REMEMBERED, 0)
    assert {task.prompt for task in log.state.ended.values()} == {""}
    log.create(ONE, prompt="p")
    log.say("task-given-up", ONE)
    assert log.task(ONE).prompt == "p"


_SAID = st.tuples(st.sampled_from(OF_TASKS), st.sampled_from((ONE, OTHER)), st.integers(-2, 0))


@settings(max_examples=60)
@given(st.lists(_SAID, max_size=40), st.integers(0, 45))
def test_a_fold_does_not_depend_on_how_the_log_is_cut(said: list[tuple[str, str, int]], cut: int) -> None:
    log = TaskLog()
    log.create(ONE)
    log.create(OTHER, blockers=(ONE,))
    for kind, subject, age in said:
        data = data_for(kind, log)
        if "token" in data:
            data["token"] = max(1, log.task(subject).token + age)
        log.say(kind, subject, **data)
    events: list[Event] = log.events
    assert after(after(PendingTasks(), events[:cut]), events[cut:]) == log.state
    assert TASKS.load(TASKS.dump(log.state)) == log.state
    for task in log.state.tasks.values():
        assert (task.token > 0) == (task.status is Status.EXECUTING)


def test_what_a_newer_version_says_of_a_project_besides_is_passed_over() -> None:
    newer = TaskLog(columns=("Ready", "Done")).events[0]
    newer = newer._replace(data=newer.data[:-1] + ',"of_a_newer_version":1}')
    assert after(PendingTasks(), [newer]).projects == {"app": Project(columns=("Ready", "Done"))}


def test_an_agent_s_error_takes_a_few_words_of_a_list() -> None:
    now = Moment(0, "boot", 0)
    failed = TaskState(ONE, "app", "mend it", now, "eve", error="{}\n" * 1_000)
    assert note(failed, now) == ("{}\n" * 1_000)[:FEW_WORDS] + "…"


def test_a_task_that_is_due_whenever_an_agent_has_said_can_be_told() -> None:
    log = TaskLog()
    latest = log.create(due=(1 << 62) - 1)
    said = task_json(latest, latest.created)
    assert (said["due"], local(said["due"])[:8]) == ("9999-12-30T00:00:00.000000Z", "9999-12-")


@pytest.mark.parametrize("status", Status)
def test_a_task_is_read_from_json_as_it_was_written(status: Status) -> None:
    log = in_status(status)
    now = log.task().created.plus(1_000_000)
    said = json.loads(json.dumps(task_json(log.task().changed(due=5, labels=("python",)), now)))
    assert task_json(task_of(said, now), now) == said
