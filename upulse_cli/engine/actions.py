"""What every daemon can carry out, and what an effect of each kind must say: known here without a daemon."""

from collections.abc import Mapping

from pydantic import BaseModel

from pulse_adapters.files.archive_sessions import ArchiveSessions
from pulse_adapters.files.clean_paths import CleanPaths
from pulse_adapters.host.collect import Collect
from pulse_adapters.host.restart_process import RestartProcess
from pulse_adapters.host.run_command import RunCommand
from pulse_adapters.host.stop_process import StopProcess
from pulse_adapters.notify.executor import Notify
from pulse_core.composition import ACTIONS
from pulse_core.engine.rollback_engine import RollbackEngine
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.kinds import Effect
from pulse_core.record.gate import held_against

EXECUTORS = (
    ArchiveSessions, CleanPaths, Collect, Notify, RestartProcess, RollbackEngine, RunCommand, StopProcess
)  # fmt: skip
PARAMS: Mapping[str, type[BaseModel]] = {one.action: one.params for one in EXECUTORS}


def complaint(effect: Effect, own: Mapping[str, type[BaseModel]]) -> str:
    """Why nobody would carry this out, or nothing. own: the params of more actions, those of the engine itself."""
    known = {**PARAMS, **ACTIONS, **own}
    if effect.action not in known:
        return str(UnknownName("executor", effect.action, known))
    try:
        held_against(known[effect.action], effect)
    except Refused as error:
        return str(error)
    return ""


def actions() -> str:
    """A table of them, for the documentation."""
    head = "| action | what it does | its params |\n|---|---|---|"
    rows = (f"| `{one.action}` | {_first(one)} | {_params(one.params)} |" for one in EXECUTORS)
    return "\n".join([head, *rows])


def _first(one: type) -> str:
    return " ".join((one.__doc__ or "").partition("\n\n")[0].split())


def _params(model: type[BaseModel]) -> str:
    told = (
        f"`{name}`{'' if field.is_required() else ' (may be left out)'}"
        + (f": {field.description}" if field.description else "")
        for name, field in model.model_fields.items()
    )
    return "; ".join(told)
