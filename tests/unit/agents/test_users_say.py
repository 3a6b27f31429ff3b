"""Users' rules have their say in who gets a task: they replace an assignment, or veto it for as long as they wish."""

from pulse_core.agents.rules import assign_tasks
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import FoldResult
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import run_synchronously
from tests.unit.agents.test_assignment import agent, seen, task

CURR = seen([agent("ada"), agent("bob")], [task(1), task(2)])


def wish(name: str) -> Effect:
    params = {"task": "task_000001", "agent": name} if name else {"task": "task_000001"}
    return Effect(action="assign-task", key="mine", params=params, reason="not on Fridays", rule="fridays")


def answer(curr: Snapshot, *wishes: Effect) -> Verdict:
    async def inner(prev: Snapshot, curr: Snapshot) -> Verdict:
        return filter_effects(FoldResult(Verdict(wishes)), curr).verdict

    async def rule(prev: Snapshot, curr: Snapshot) -> Verdict:
        return await assign_tasks(prev, curr, inner)

    verdict = run_synchronously(rule(curr, curr))
    assert verdict is not None
    return verdict


def assigned(verdict: Verdict) -> dict[str, object]:
    return {str(one.params["task"])[-1]: one.params.get("agent") for one in verdict.effects}


def test_without_them_the_best_agent_gets_a_task() -> None:
    assert assigned(answer(CURR)) == {"1": "ada", "2": "bob"}


def test_what_they_assign_is_not_assigned_again() -> None:
    verdict = answer(CURR, wish("eve"))
    assert assigned(verdict) == {"1": "eve", "2": "bob"}
    assert [one.key for one in verdict.effects] == [
        "mine",
        "assign-task:task_000002",
        "run-agent:task_000002:0",
    ]


def test_a_veto_holds_tick_after_tick_is_said_and_recorded_by_nobody() -> None:
    for _ in range(3):
        verdict = answer(CURR, wish(""))
        assert assigned(verdict) == {"2": "bob"}
        assert verdict.notes[0] == "task_000001 goes to nobody, as fridays wishes: not on Fridays"
