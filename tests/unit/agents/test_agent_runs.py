"""The fold of runs: what goes on, what is left to clean up, who is paused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse_core.agents.events import KINDS
from pulse_core.agents.projection import DAY, RUNS, AgentRuns, RunCost, after, cost_in
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.model.payload import parse
from tests.events import event

HOUR = 3_600_000_000
TASKS, AGENTS, IDS = ("task_000001", "task_000002"), ("ada", "bob"), ("r1", "r2")
STARTED = {"agent": "ada", "token": 7, "pid": 10, "started": 20, "workspace": "/w"}
DATA: dict[str, dict[str, Any]] = {
    "agent-run-started": STARTED,
    "agent-run-paused": {"why": "too many turns"},
    "agent-run-stop-requested": {"why": "too long"},
    "agent-run-ended": {"exit": 1, "error": "no", "usage": {"total_cost_usd": 0.5}},
    "agent-run-cleaned": {},
    "agent-run-counted": {"tokens": 5},
    "agent-run-printed": {"text": "so"},
    "agent-set-aside": {"why": "not logged in"},
    "workspace-made": {"path": "/w", "branch": "b"},
    "workspace-kept": {"path": "/w", "why": "work"},
}


def log(*said: tuple[str, str, str]) -> list[Event]:
    """Events of these kinds, subjects and runs."""
    found = []
    for number, (kind, subject, run) in enumerate(said, 1):
        data = dict(
            DATA.get(kind, {}),
            **({"run": run} if kind.startswith("agent-run") and "printed" not in kind else {}),
        )
        found.append(event(number, parse(kind, data), subject))
    return found


def test_a_run_is_known_until_it_is_cleaned_up() -> None:
    events = log(
        ("workspace-made", TASKS[0], ""),
        ("agent-run-started", TASKS[0], "r1"),
        ("agent-run-stop-requested", TASKS[0], "r1"),
        ("agent-run-ended", TASKS[0], "r1"),
        ("agent-run-cleaned", TASKS[0], "r1"),
        ("workspace-removed", TASKS[0], ""),
    )
    begun = after(AgentRuns(), events[:2])
    (run,) = begun.live
    assert (run.task, run.agent, run.token, run.main, run.workspace) == (TASKS[0], "ada", 7, (10, 20), "/w")
    assert begun.worktrees == {TASKS[0]: "/w"}
    stopped = after(begun, events[2:3])
    assert stopped.live[0].stop == "too long"
    ended = after(stopped, events[3:4])
    assert (ended.live, len(ended.runs)) == ((), 1)
    over = after(ended, events[4:])
    assert (over.runs, over.worktrees, over.cost_of_task(TASKS[0])) == ({}, {}, 0.5)


def test_what_a_newer_version_says_of_a_run_besides_is_passed_over() -> None:
    (known,) = log(("agent-run-started", TASKS[0], "r1"))
    newer = known._replace(data=known.data[:-1] + ',"of_a_newer_version":1}')
    assert after(AgentRuns(), [newer]) == after(AgentRuns(), [known])


def test_a_pause_holds_until_it_is_taken_back() -> None:
    events = log(("agent-paused", "ada", ""), ("agent-resumed", "ada", ""))
    assert after(AgentRuns(), events[:1]).paused == {"ada": events[0].moment}
    resumed = after(AgentRuns(), events)
    assert (resumed.paused, resumed.resumed) == ({}, {"ada": events[1].moment})


def test_costs_are_counted_for_a_day_and_an_agent_waits_until_it_is_below_its_budget() -> None:
    at = Moment(1_800_000_000_000_000, "boot", 100 * HOUR)
    costs = (
        RunCost(at.plus(-30 * HOUR), 9.0, "t1"),
        RunCost(at.plus(-20 * HOUR), 3.0, "t1"),
        RunCost(at, 3.0, "t2"),
    )
    runs = AgentRuns(costs={"ada": costs})
    assert runs.over_budget_us(5.0, at, agent="ada") == 4 * HOUR
    assert runs.over_budget_us(3.0, at, agent="ada") == 24 * HOUR
    assert [runs.over_budget_us(budget, at, agent="ada") for budget in (0.0, 7.0)] == [0, 0]
    assert runs.over_budget_us(1.0, at, agent="bob") == 0
    assert runs.over_budget_us(5.0, at) == runs.over_budget_us(5.0, at, agent="ada")
    assert [runs.over_budget_us(6.5, at, yet, "ada") for yet in (0.5, 0.6, 9.0)] == [0, 4 * HOUR, 24 * HOUR]
    assert (runs.average_cost("ada"), runs.average_cost("bob")) == ((5.0, 0.0), (0.0, 0.0))
    assert (runs.cost_of_task("t1"), runs.cost_of_task("t2")) == (12.0, 3.0)


@pytest.mark.parametrize("usage", [None, {}, {"total_cost_usd": "1"}, {"total_cost_usd": -1}])
def test_what_tells_no_cost_has_none(usage: object) -> None:
    assert cost_in(usage) == 0.0


_SAID = st.tuples(
    st.sampled_from([kind.kind for kind in KINDS]), st.sampled_from(TASKS + AGENTS), st.sampled_from(IDS)
)


@settings(max_examples=60)
@given(st.lists(_SAID, max_size=25), st.integers(0, 25))
def test_the_fold_does_not_depend_on_how_the_log_is_cut(said: list[tuple[str, str, str]], cut: int) -> None:
    events = log(*said)
    whole = after(AgentRuns(), events)
    assert after(after(AgentRuns(), events[:cut]), events[cut:]) == whole
    assert RUNS.load(RUNS.dump(whole)) == whole


class CountedAmount(float):
    """An amount that knows how often one of its kind was added."""

    added = 0

    def __radd__(self, other: float) -> float:
        CountedAmount.added += 1
        return other + float(self)


def test_a_budget_that_was_lowered_adds_each_cost_once_however_many_there_are() -> None:
    second, count = 1_000_000, 500
    costs = [
        RunCost(Moment(at, "boot", at), CountedAmount(0.01), "task")
        for at in range(0, count * second, second)
    ]
    runs, now = AgentRuns(costs={"ada": tuple(costs)}), Moment(count * second, "boot", count * second)
    left = runs.over_budget_us(0.105, now, agent="ada")
    assert left == DAY - 11 * second
    assert CountedAmount.added <= count
