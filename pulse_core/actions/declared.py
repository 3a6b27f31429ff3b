"""All built-in actions, in one explicit tuple."""

from collections.abc import Mapping

from pydantic import BaseModel

from pulse_core.actions.commands import COLLECT, RUN_COMMAND
from pulse_core.actions.declaration import ActionDeclaration, parsed_params
from pulse_core.actions.engine import ROLLBACK_ENGINE
from pulse_core.actions.files import ARCHIVE_SESSIONS, CLEAN_PATHS
from pulse_core.actions.notices import NOTIFY
from pulse_core.actions.processes import RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.kinds import Effect

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
BY_NAME: Mapping[str, ActionDeclaration] = {one.name: one for one in BUILT_IN}
UNRESTRICTED = ActionDeclaration("", BaseModel)
"""For the actions of an engine's own executors, which declare nothing here."""


def declared(action: str) -> ActionDeclaration:
    """What is declared of this action."""
    return BY_NAME.get(action, UNRESTRICTED)


def complaint(effect: Effect, own: Mapping[str, type[BaseModel]]) -> str:
    """Why nobody would carry this out, or nothing. own: the params of more actions, those of the engine itself."""
    known = {**{one.name: one.params for one in BUILT_IN}, **own}
    if effect.action not in known:
        return str(UnknownName("executor", effect.action, known))
    try:
        parsed_params(known[effect.action], effect)
    except Refused as error:
        return str(error)
    return ""
