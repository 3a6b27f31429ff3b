"""Agents and runs for people and programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from pulse_core.agents.assignment import HELD
from pulse_core.agents.availability import unavailable
from pulse_core.agents.limits import RunSample
from pulse_core.agents.projection import RUNS, Run
from pulse_core.agents.rules import KEY, ORPHANS
from pulse_core.agents.settings import AGENTS
from pulse_core.model.moment import US_PER_SECOND, iso
from pulse_core.model.text import count
from pulse_core.projections.state import Snapshot
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.stats import STATS


def agents_json(curr: Snapshot) -> list[Mapping[str, Any]]:
    """The agents as JSON values: what each is, and what it does now."""
    known = curr.of(TASKS).tasks.values()
    return [
        {
            **agent.model_dump(include={"name", "kind", "labels", "columns", "projects", "concurrency"}),
            "model": agent.model or None,
            "tasks": [one.id for one in known if one.agent == agent.name and one.status in HELD],
            "unavailable": unavailable(agent, curr) or None,
        }
        for agent in AGENTS.of(curr.settings)
    ]


def stats_json(agent: str, curr: Snapshot) -> Mapping[str, Any]:
    """How an agent has done, as JSON values."""
    its = curr.of(STATS)[agent]
    average = its.average_duration_us
    counts = ("assigned", "acked", "closed", "failed", "given_up", "consecutive_failures")
    return {
        "name": agent,
        **{name: getattr(its, name) for name in counts},
        "average_s": None if average is None else average / US_PER_SECOND,
        "labels": {name: {"closed": one.closed, "failed": one.failed} for name, one in its.labels.items()},
    }


def run_json(run: Run, curr: Snapshot) -> Mapping[str, Any]:
    """A run as JSON values, as it was seen last."""
    last = curr.window(KEY).last
    sample = RunSample.of(last.data.get(run.id) if last else None)
    return {
        "run": run.id,
        **{name: getattr(run, name) for name in ("task", "agent", "workspace")},
        **{name: getattr(sample, name) for name in ("output", "memory", "turns", "tokens")},
        "pid": sample.pid or run.pid,
        "since": iso(run.moment.at),
        "took_s": curr.now.since(run.moment) / US_PER_SECOND,
        "quiet_s": sample.quiet_us / US_PER_SECOND,
        "cpu_s": sample.cpu_us / US_PER_SECOND,
        "unlimited": run.unlimited or None,
        "paused": run.held if run.paused else None,
        "stop": run.stop or None,
        "ended": None if run.ended is None else iso(run.ended.at),
    }


def runs_json(curr: Snapshot) -> list[Mapping[str, Any]]:
    """The runs that are not cleaned up, oldest first, and what others have left behind."""
    last, orphans = curr.window(ORPHANS).last, list[Mapping[str, Any]]()
    for pid, one in last.data.items() if last else ():
        moment = curr.now.plus(-one["age_us"])
        run = Run(one["effect"], "", one["agent"], 0, int(pid), one["started"], moment, stop="is left behind")
        orphans.append({**run_json(run, curr), "memory": one["memory"]})
    return [*(run_json(run, curr) for run in curr.of(RUNS).runs.values()), *orphans]


def status_lines(curr: Snapshot) -> Iterator[str]:
    """How many work, and who gets nothing, if there are agents."""
    agents, live = AGENTS.of(curr.settings), [run for run in curr.of(RUNS).live if not run.paused]
    if kept := curr.of(RUNS).kept:
        yield f"worktrees {count(len(kept), 'worktree')} of tasks that have ended: upulse agents worktrees"
    if agents:
        yield f"agents    {len(agents)}, {len({run.agent for run in live})} at work on {count(len(live), 'task')}"
    for agent in agents:
        if why := unavailable(agent, curr):
            yield f"          {agent.name} is {why}"
