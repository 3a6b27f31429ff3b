"""All built-in actions, in one explicit tuple."""

from pydantic import BaseModel

from pulse_core.actions.commands import COLLECT, RUN_COMMAND
from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.actions.engine import ROLLBACK_ENGINE
from pulse_core.actions.files import ARCHIVE_SESSIONS, CLEAN_PATHS
from pulse_core.actions.notices import NOTIFY
from pulse_core.actions.processes import RESTART_PROCESS, STOP_PROCESS

BUILT_IN: tuple[ActionDeclaration, ...] = (
    ARCHIVE_SESSIONS,
    CLEAN_PATHS,
    COLLECT,
    NOTIFY,
    RESTART_PROCESS,
    ROLLBACK_ENGINE,
    RUN_COMMAND,
    STOP_PROCESS,
)
UNRESTRICTED = ActionDeclaration("", BaseModel)
"""For the actions of an engine's own executors, which declare nothing here."""
