"""The capability of tasks."""

from pulse_core.capability import Capability
from pulse_core.tasks.actions import ACTIONS
from pulse_core.tasks.admission import check_created, check_move, check_project, check_removal
from pulse_core.tasks.events import (
    KINDS,
    ProjectRemoved,
    ProjectSet,
    TaskBlockersSet,
    TaskCreated,
    TaskPullRequestOpened,
    TaskResultRefused,
)
from pulse_core.tasks.executors import executors
from pulse_core.tasks.listing import status_lines
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.rules import close_done_tasks, release_ended_claims, tasks_for_conditions
from pulse_core.tasks.settings import SETTINGS
from pulse_core.tasks.stats import STATS

CAPABILITY = Capability(
    "tasks",
    kinds=KINDS,
    projections=(TASKS, STATS),
    admits={
        **{kind.kind: check_move for kind in KINDS if kind not in (TaskResultRefused, TaskPullRequestOpened)},
        TaskCreated.kind: check_created,
        ProjectSet.kind: check_project,
        ProjectRemoved.kind: check_removal,
    },
    alone=frozenset({ProjectSet.kind, ProjectRemoved.kind, TaskCreated.kind, TaskBlockersSet.kind}),
    rules=(release_ended_claims, close_done_tasks, tasks_for_conditions),
    settings=(SETTINGS,),
    status=status_lines,
    actions=ACTIONS,
    executors=executors,
)
