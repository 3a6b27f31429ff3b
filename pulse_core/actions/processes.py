"""Actions that restart and stop processes."""

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.model import actions
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.ports.host import ProcessId
from pulse_core.projections import Intent, Snapshot, State
from pulse_core.projections.effects import MINUTE
from pulse_core.settings import ProcessSettings


class InsteadOf(BaseModel):
    """The dead process that the new one is to replace."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    pid: int
    started: int

    @property
    def found(self) -> ProcessId:
        """As an identity."""
        return ProcessId(self.pid, self.started)


class RestartParams(BaseModel):
    """Which process; with `instead_of` or `if_dead`, nothing that lives and answers is taken for dead."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    process: str = Field(description="its name in the settings")
    instead_of: InsteadOf | None = Field(None, description="the one seen dying, which alone may be replaced")
    if_dead: bool = Field(False, description="do nothing if another one is up by now")
    fresh: bool = Field(False, description="the death was seen a moment before this was wished")
    for_condition: str = Field("", description="the condition that this answers, as `memory`")


class Consumer(BaseModel):
    """One process and no other, and the pattern that allows to stop it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    pid: int = Field(gt=1)
    started: int = Field(description="its start time, clock ticks after boot")
    pattern: str = Field(description="one of `stop` under [resources]")


class StopParams(BaseModel):
    """Which process: a guarded one, or one that the settings allow to stop when memory is short."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    process: str | None = Field(None, description="a guarded one's name in the settings")
    consumer: Consumer | None = None
    for_condition: str = Field("", description="the condition that this is an answer to")

    @model_validator(mode="after")
    def _one_of_both(self) -> "StopParams":
        if (self.process is None) == (self.consumer is None):
            raise ValueError("give either process, a name in the settings, or consumer")
        return self


def restart_objection(effect: Effect, state: State, now: Moment) -> str:
    """Object if the process was requested to be down by now."""
    stop = _stop(effect, state, now)
    return f"stopped by {stop.by} in the meantime" if stop else ""


def stop_objection(effect: Effect, state: State, now: Moment) -> str:
    """Object if the guarded process need not be down any more."""
    is_taken_back = bool(effect.params.get("process")) and _stop(effect, state, now) is None
    return "the stop was taken back in the meantime" if is_taken_back else ""


def _stop(effect: Effect, state: State, now: Moment) -> Intent | None:
    stop = state.processes[str(effect.params.get("process", ""))].stop
    return stop if stop is not None and stop.holds(now) else None


def stop_refusal(effect: Effect, curr: Snapshot) -> str:
    """Refuse to stop a guarded process, which would be restarted at once."""
    if guarded := _guarded(effect, curr):
        return (
            f"{guarded.name} is guarded: survival would start again what a rule stops; wish for"
            f" {actions.RESTART_PROCESS}"
        )
    return ""


def is_restarted_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Until a process has been up for its `healthy_after` only survival restarts it.

    Otherwise a rule could keep it down by restarting it repeatedly.
    """
    process = _guarded(effect, curr)
    if process is None:
        return False  # the append is refused, and says why
    up = curr.process(process.name).up
    return up is None or curr.now.since(up) < max(process.restart.healthy_after, MINUTE)


def _guarded(effect: Effect, curr: Snapshot) -> ProcessSettings | None:
    """The guarded process that this is about, if there is one."""
    name = effect.params.get("process")
    return next((one for one in curr.settings.process if one.name == name), None)


RESTART_PROCESS = ActionDeclaration(
    actions.RESTART_PROCESS,
    RestartParams,
    "Ends what is left of a process and starts it again; does nothing if another one is up by now.",
    exclusive_by="process",  # two restarts of one process at a time would leave two of it
    is_reserved=True,
    objection=restart_objection,
    is_too_soon=is_restarted_too_soon,
)
STOP_PROCESS = ActionDeclaration(
    actions.STOP_PROCESS,
    StopParams,
    "SIGTERM, ten seconds of patience, then the whole tree; a unit is stopped by systemd.",
    is_reserved=True,
    objection=stop_objection,
    refusal=stop_refusal,
)
