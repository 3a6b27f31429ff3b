"""What may happen to a task now: everything else is refused, with what would be legal."""

from collections.abc import Iterable, Sequence

from pulse_core.capability import RecordedBefore, RefusedOnRecord
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.payload import Payload, Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.tasks import events
from pulse_core.tasks.fitness import obstacles, unfitness, worker
from pulse_core.tasks.projection import TASKS, PendingTasks
from pulse_core.tasks.settings import SETTINGS
from pulse_core.tasks.task import COMMANDS, HELD_BY_TOKEN, MOVES, Project, Status, TaskState

MOST_PARTS, DEEPEST = 1_000, 50


def check_project(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a project with a name of no use, a column twice, or without a column in which open tasks lie."""
    assert isinstance(draft.payload, events.ProjectSet)
    if not events.NAME.fullmatch(draft.subject):
        raise Refused(f"{draft.subject[:100]!r} is no name of a project: letters, digits, '.', '_' and '-'")
    columns = draft.payload.columns
    if len(set(columns)) < len(columns):
        raise Refused("a column is named twice")
    if lost := {one.column for one in state.of(TASKS).of_project(draft.subject)} - set(columns):
        raise Refused(f"open tasks lie in {', '.join(sorted(lost))}; move them, or keep the column")


def check_removal(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse to remove a project that is unknown or has open tasks."""
    tasks = state.of(TASKS)
    known_project(draft.subject, tasks)
    if left := tasks.of_project(draft.subject):
        raise Refused(f"open tasks of {draft.subject}: {len(left)}; close them, or give them up")


def check_created(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a task without a place, or one more than there may be."""
    made, tasks = draft.payload, state.of(TASKS)
    assert isinstance(made, events.TaskCreated)
    if not events.TASK_ID.fullmatch(draft.subject):
        words = "is no id of a task: 'task_' and 6 to 32 small letters or digits"
        raise Refused(f"{draft.subject[:100]!r} {words}")
    if not made.title.strip():
        raise Refused("its title is blank; say in a few words what is to be done")
    if tasks.find(draft.subject):
        raise Refused(f"there is a task {draft.subject} already")
    if len(tasks.tasks) >= (most := SETTINGS.of(settings).most):
        raise Refused(f"as many tasks are open as may be ({most:,}); close some, or raise [tasks] most")
    check_column(made.column, made.project, known_project(made.project, tasks))
    if made.parent and len(known_task(made.parent, tasks).parts) >= MOST_PARTS:
        raise Refused(f"{made.parent} has {MOST_PARTS:,} parts that are not closed")
    if made.parent and len(tasks.above(made.parent)) > DEEPEST:  # all below are found by climbing
        raise Refused(f"{made.parent} is {DEEPEST} parts deep; make this a part of one above it")
    check_blockers((draft.subject, *([made.parent] if made.parent else ())), made.blockers, tasks)


def check_move(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse what the table of moves does not allow, what another holds, and what names nothing known."""
    payload, tasks = draft.payload, state.of(TASKS)
    task = known_task(draft.subject, tasks)
    token = getattr(payload, "token", None)
    if token is not None and token != task.token:
        raise _late(payload, token, task)
    is_claim = isinstance(payload, events.TaskExecuting) and role < Role.DAEMON
    if is_claim and task.token and task.agent == getattr(payload, "agent", ""):
        raise RecordedBefore(f"{task.agent} holds {task.id} already, under {task.token}", task.token)
    if payload.kind not in MOVES[task.status]:
        said = COMMANDS.get(payload.kind, payload.kind)
        raise Refused(f"{task.id} is {described(task)}: {said} is not possible; {legal(task)}")
    if task.token and token is None and payload.kind in HELD_BY_TOKEN and role < Role.PERSON:
        raise Refused(f"{task.id} is held by {task.agent}; say the token of the claim")
    if isinstance(payload, events.TaskMoved):
        check_column(payload.column, task.project, tasks.projects.get(task.project, Project()))
    elif isinstance(payload, events.TaskBlockersSet):
        check_blockers((task.id,), payload.blockers, tasks)
    elif isinstance(payload, events.TaskRetried):
        known_project(task.project, tasks)
    elif isinstance(payload, events.TaskExecuting | events.TaskAssigned):
        project = tasks.projects.get(task.project, Project())
        agent, is_claim = worker(payload.agent, project, settings), isinstance(payload, events.TaskExecuting)
        if is_claim and (found := list(obstacles(task, agent, project))):
            raise Refused(f"{task.id} can't be claimed: {'; '.join(found)}")
        if not project.has_member(agent.name):
            raise Refused(f"{agent.name} {unfitness(agent, task, project)}")


def _late(payload: Payload, token: int, task: TaskState) -> Refused:
    """Why nothing can be said under this token any more; whatever was to be said is recorded all the same."""
    now = f"it is {task.status}; {legal(task)}"
    if task.token:
        now = f"{task.agent} holds it under {task.token} now"
    words = f"the claim {token} of {task.id} is over: {now}"
    if isinstance(payload, events.TaskHeartbeat):
        return Refused(words)
    result = next((getattr(payload, one) for one in ("result", "error", "why") if hasattr(payload, one)), "")
    refused = events.TaskResultRefused(token=token, said=payload.kind, result=result)
    return RefusedOnRecord(words, refused, task.id)


def known_task(id_: str, tasks: PendingTasks) -> TaskState:
    """The task of this id; raises UnknownName, or Refused if it ended too long ago to be known."""
    if task := tasks.find(id_):
        return task
    raise UnknownName("open task", id_, tasks.tasks)


def known_project(name: str, tasks: PendingTasks) -> Project:
    """The project of this name; raises UnknownName with those that there are."""
    if project := tasks.projects.get(name):
        return project
    if not tasks.projects:
        raise Refused(f"no project {name!r}: there is none yet; add one with: upulse project add {name}")
    raise Refused(f"no project {name!r}; there are {', '.join(sorted(tasks.projects))}")


def check_column(column: str, name: str, project: Project) -> None:
    """Refuse a column that the project does not have."""
    if column not in project.columns:
        raise Refused(f"the project {name} has no column {column!r}; it has {', '.join(project.columns)}")


def check_blockers(waiting: Sequence[str], blockers: Iterable[str], tasks: PendingTasks) -> None:
    """Refuse blockers that are not known, or that wait for those which they would block: the first of `waiting`, and
    what it is a part of."""
    for blocker in blockers:
        known_task(blocker, tasks)
    waits = dict.fromkeys(blockers, waiting[0])  # by each task that was found: what waits for it
    ahead = list(waits)
    while ahead:
        if (one := ahead.pop()) in waiting:
            path = [one]
            while path[-1] != waiting[0] or len(path) == 1:
                path.append(waits[path[-1]])
            path += waiting[1 : waiting.index(one) + 1]
            raise Refused(f"{one} would wait for itself: {' -> '.join(reversed(path))}")
        found = tasks.find(one)
        if found and found.status is not Status.CLOSED:  # one that was given up may be retried
            news = [id_ for id_ in (*found.blockers, *found.parts) if id_ not in waits]
            waits.update(dict.fromkeys(news, one))
            ahead += news


def described(task: TaskState) -> str:
    """Its status for people, with who holds it."""
    return f"{task.status} by {task.agent}" if task.status is Status.EXECUTING else str(task.status)


def legal(task: TaskState) -> str:
    """The commands that are possible now, in words."""
    found = sorted(COMMANDS[kind] for kind in MOVES[task.status] if kind in COMMANDS)
    return f"possible: upulse task {', '.join(found)}" if found else "nothing more can happen to it"
