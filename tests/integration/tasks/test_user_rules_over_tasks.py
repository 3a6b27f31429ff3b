"""A user's rule sees tasks and statistics, typed, in the process in which such rules run."""

from pathlib import Path

from pulse_core.model.verdict import Verdict
from tests.integration.rule_host.rule_host_engines import at, grown, host_supervisor, written
from tests.unit.tasks.task_events import ONE, OTHER, THIRD, TaskLog

RULES = """
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.stats import STATS
from pulse_core.tasks.task import Status


async def assigns(prev, curr, inner):
    verdict, tasks, stats = await inner(prev, curr), curr.of(TASKS), curr.of(STATS)
    best = max(stats.agents, key=lambda name: stats[name].closed, default="")
    for task in tasks.tasks.values():
        if task.status is Status.PENDING and not task.waits_for and best:
            params = {"task": task.id, "agent": best, "why": f"{stats[best].closed} closed in {task.project}"}
            verdict = verdict.plus(Effect(action="assign-task", key=f"assign-task:{task.id}", params=params))
    new = tasks.tasks.keys() - prev.of(TASKS).tasks.keys()
    return verdict.noting(f"{len(new)} new, {tasks.projects['app'].columns[0]}" if tasks.projects else "nothing")
"""


async def test_a_user_s_rule_gives_tasks_to_whom_the_statistics_name(tmp_path: Path) -> None:
    log = TaskLog()
    log.create(ONE)
    log.say("task-acked", token=log.claim(agent="bob"), result="done")
    log.say("task-closed")
    early = len(log.events)
    log.create(OTHER)
    log.create(THIRD, blockers=(OTHER,))
    before = at(1, grown(log.events[:early]))
    async with host_supervisor(written(tmp_path, RULES), before, log.events[:early]) as host:
        host.feed(log.events[early:])
        now = at(2, grown(log.events))
        found = await host.fold(before, now)
        assert found.faults == ()
        verdict: Verdict = found.verdict
        (wish,) = verdict.effects
        assert wish.params == {"task": OTHER, "agent": "bob", "why": "1 closed in app"}
        assert verdict.notes == ("2 new, Backlog",)
        log.say("task-closed", OTHER)
        host.feed(log.events[-1:])
        (wish,) = (await host.fold(now, at(3, grown(log.events)))).verdict.effects
        assert wish.params["task"] == THIRD
