"""The capability of tasks."""

from pulse_core.capability import Capability
from pulse_core.tasks import events as kinds
from pulse_core.tasks.actions import ACTIONS
from pulse_core.tasks.admission import check_created, check_move, check_project, check_removal
from pulse_core.tasks.executors import executors
from pulse_core.tasks.listing import status_lines, task_report
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.rules import RULES
from pulse_core.tasks.settings import SETTINGS
from pulse_core.tasks.stats import STATS

NO_MOVES = (kinds.TaskResultRefused, kinds.TaskPullRequestOpened)
ALONE = (kinds.ProjectSet, kinds.ProjectRemoved, kinds.TaskCreated, kinds.TaskBlockersSet, kinds.TaskRetried)

CAPABILITY = Capability(
    "tasks",
    kinds=kinds.KINDS,
    projections=(TASKS, STATS),
    admits={
        **{kind.kind: check_move for kind in kinds.KINDS if kind not in NO_MOVES},
        kinds.TaskCreated.kind: check_created,
        kinds.ProjectSet.kind: check_project,
        kinds.ProjectRemoved.kind: check_removal,
    },
    alone=frozenset(kind.kind for kind in ALONE),
    rules=RULES,
    own_topics=frozenset({"task"}),
    settings=(SETTINGS,),
    status=status_lines,
    subject=task_report,
    actions=ACTIONS,
    executors=executors,
)
