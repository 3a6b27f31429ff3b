"""Which ready task goes to which agent, and why. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulse_core.agents.actions import RUN_AGENT
from pulse_core.agents.availability import Budgets, pause_left, unavailable
from pulse_core.agents.settings import AGENTS, GENERAL, AgentSettings
from pulse_core.model.text import count
from pulse_core.projections.state import Snapshot
from pulse_core.tasks.actions import ASSIGN_TASK
from pulse_core.tasks.fitness import unfitness
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.settings import SETTINGS as TASK_SETTINGS
from pulse_core.tasks.stats import STATS, AgentStats
from pulse_core.tasks.task import Status, TaskState

HELD = frozenset({Status.ASSIGNED, Status.EXECUTING})
TOLD = 5
"""Tasks of which it is told why they go to nobody."""
STEPS = 200
"""Most steps of priority that waiting is worth: then the longest wait comes before whatever is newer."""


class Assignment(NamedTuple):
    """A task for an agent."""

    task: TaskState
    agent: AgentSettings
    why: str


@dataclass
class AvailableAgent:
    """An agent that may be given tasks now. load: how many it has; room: how many more it may get; trial: it gets one."""

    agent: AgentSettings
    stats: AgentStats
    load: int
    room: int
    trial: bool

    def rank(self, task: TaskState) -> tuple[float, float, float, str]:
        """The least is the best: by its load, its success with the task's labels, its speed, its name."""
        average = self.stats.average_duration_us or 0
        return self.load / self.agent.concurrency, -self.success(task), average, self.agent.name

    def success(self, task: TaskState) -> float:
        """How much of what it tried with these labels, or with any, it has closed; a half, where nothing is known."""
        known = [self.stats.labels[label] for label in task.labels if label in self.stats.labels]
        closed = sum(one.closed for one in known) if known else self.stats.closed
        failed = sum(one.failed for one in known) if known else self.stats.failed
        return (closed + 1) / (closed + failed + 2)


def candidates(curr: Snapshot, budgets: Budgets) -> list[AvailableAgent]:
    """The agents that may be given a task now; what those cost that are given but not begun is set aside."""
    stats, found = curr.of(STATS), []
    held = {task.id: task.agent for task in curr.of(TASKS).tasks.values() if task.status in HELD}
    loads = Counter({**held, **budgets.begun}.values())
    for id_, task in curr.of(TASKS).tasks.items():
        if task.status is Status.ASSIGNED and id_ not in budgets.begun:
            budgets.reserve(task.agent)
    for agent in AGENTS.of(curr.settings):
        left = pause_left(agent.name, curr.state, curr.settings, curr.now)
        load = loads[agent.name]
        room = (agent.concurrency if left is None else 1) - load
        if room > 0 and not unavailable(agent, curr, budgets):
            found.append(AvailableAgent(agent, stats[agent.name], load, room, left is not None))
    return found


def under_way(curr: Snapshot) -> frozenset[str]:
    """The tasks that are being assigned or begun."""
    return frozenset(
        str(one.params.get("task"))
        for one in curr.effects.open.values()
        if one.action in (ASSIGN_TASK.name, RUN_AGENT.name)
    )


def ready(curr: Snapshot) -> list[TaskState]:
    """Tasks that wait for an agent, the first to be done first: by priority, with what they have waited; then by age."""
    tasks, attempts = curr.of(TASKS), TASK_SETTINGS.of(curr.settings).attempts
    aging, pending, wished = GENERAL.of(curr.settings).aging, Status.PENDING, under_way(curr)
    found = [
        task
        for task in tasks.tasks.values()
        if task.status is pending
        and task.attempts < attempts
        and task.id not in wished
        and not task.waits_for
        and not (task.retry_us and task.retry_left(curr.now))
    ]

    def place(task: TaskState) -> tuple[int, int, str]:
        waited = min(STEPS, curr.now.since(task.created) // aging) if aging else 0
        return -task.priority - waited, task.created.at, task.id

    return sorted(found, key=place)


def plan(curr: Snapshot) -> tuple[list[Assignment], list[TaskState]]:
    """What goes to whom, each ready task that an agent has room for to the best of these; and those that go to nobody, the
    first to be done first."""
    budgets, projects = Budgets(curr), curr.of(TASKS).projects
    free = candidates(curr, budgets)
    given, waiting = list[Assignment](), list[TaskState]()
    able: dict[tuple[object, ...], list[AvailableAgent]] = {}  # thousands of tasks may want the same
    for task in ready(curr):
        project = projects[task.project]
        wanted = (task.column, task.project, task.labels)
        if (fitting := able.get(wanted)) is None:
            fitting = able[wanted] = [one for one in free if not unfitness(one.agent, task, project)]
        if not fitting:
            waiting.append(task)
            continue
        best = min(fitting, key=lambda one: one.rank(task))
        given.append(Assignment(task, best.agent, _why(best, task, len(fitting))))
        best.load, best.room = best.load + 1, best.room - 1
        budgets.reserve(best.agent.name)
        left = [one for one in free if one.room and not budgets.near(one.agent)[0]]
        if len(left) < len(free):
            free = left
            able.clear()
    return given, waiting


def obstacles_of(waiting: Sequence[TaskState], curr: Snapshot) -> Iterator[str]:
    """Why each of the first of these goes to nobody, in words."""
    for task in waiting[:TOLD]:
        reasons = (f"{one.name} {_obstacle(one, task, curr)}" for one in AGENTS.of(curr.settings))
        yield f"{task.id} goes to nobody: {'; '.join(reasons)}"
    if len(waiting) > TOLD:
        yield f"{len(waiting) - TOLD} more tasks go to nobody"


def _obstacle(agent: AgentSettings, task: TaskState, curr: Snapshot) -> str:
    if why := unavailable(agent, curr):
        return f"is {why}"
    project = curr.of(TASKS).projects[task.project]
    return unfitness(agent, task, project) or f"has {count(agent.concurrency, 'task')} already"


def _why(best: AvailableAgent, task: TaskState, fitting: int) -> str:
    """Why this agent, in words."""
    words = [f"{best.agent.name} has {count(best.load, 'task')}, and may have {best.agent.concurrency}"]
    if task.labels:
        words.append(f"can do {', '.join(task.labels)}")
    words.append(f"closed {best.stats.closed} and failed {best.stats.failed}")
    if best.trial:
        words.append("is on trial")
    if fitting > 1:
        words.append(f"{fitting - 1} more could do it")
    return "; ".join(words)
