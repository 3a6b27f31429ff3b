"""Declarations of the built-in actions: params and restrictions. The core reads nothing else about them.

Nothing acts here: an executor carries an action out, in an adapter, and takes its name and params from its declaration.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pulse_core.model import names
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import Refused
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.payload import describe
from pulse_core.ports.host import ProcessId
from pulse_core.projections.effects import MINUTE
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.processes import Intent
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.groups import AbsolutePath, RootedPath
from pulse_core.settings.processes import ProcessSettings

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]

LimitedPath = Annotated[RootedPath, StringConstraints(max_length=4_096)]

TOPICS = frozenset(
    {
        "blast-radius",
        "daemon",
        "doubt",
        "engine",
        "flapping",
        "log",
        "network",
        "resource",
        "safe-mode",
        "stop",
        "usage",
    }
)
"""Topics of the core's survival rules, the beginning of a notice's key after the prefix. They are reserved: an open
effect of another rule with such a key would block survival."""

BLAST_RADIUS = "blast_radius"
"""The name of the rule that holds back what is over a budget."""
BUDGET, STARTS_BUDGET = "blast-radius", "blast-radius:starts"
CAPABILITIES_BUDGET, RULES_BUDGET = "blast-radius:capabilities", "blast-radius:engine"
"""Topics: survival's actions that are held back; starts of dead processes; effects of capabilities; and those of the
rules inside of these."""
ABOUT_RULES = frozenset({PREFIX + CAPABILITIES_BUDGET, PREFIX + RULES_BUDGET})
"""Keys of notices that only the whole fold can evaluate: the reflex has no inner rules and would call them over."""


class ActionParams(BaseModel):
    """Base of the params of built-in actions."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True, slots=True)
class ActionDeclaration:
    """One action: what holds for all of its effects, whichever rule and executor.

    params: the model of its effects' params; summary: what it does, for people;
    exclusive_by: the param whose value only one open effect may have at a time, or nothing;
    concurrency: how many that rules, or people, request may execute at a time, where that is less than the settings say;
    is_reserved: whether only survival rules may request effects whose key begins with its name;
    objection: why an effect that a rule requested must not begin now, though it was right when it was requested;
    refusal: why a rule of the engine may never request such an effect;
    too_soon: why a rule of the engine may not request it yet. All three are pure, and say nothing if it may.
    """

    name: str
    params: type[BaseModel]
    summary: str = ""
    exclusive_by: str = ""
    concurrency: int | None = None
    is_reserved: bool = False
    objection: Callable[[Effect, State, Moment], str] = lambda effect, state, now: ""
    refusal: Callable[[Effect, Snapshot], str] = lambda effect, curr: ""
    too_soon: Callable[[Effect, Snapshot], str] = lambda effect, curr: ""

    def wish(self, of: str, params: Mapping[str, Json], reason: str) -> Effect:
        """An effect of this action, of which one is open at a time about `of`, since its key names that."""
        return Effect(action=self.name, key=f"{self.name}:{of}", params=dict(params), reason=reason)


def parsed_params(model: type[BaseModel], effect: Effect) -> Any:
    """The effect's params as this model; raises Refused with what is wrong in them."""
    try:
        return model.model_validate(effect.params)
    except ValidationError as error:
        raise Refused(f"params of {effect.action}: {describe(error)}") from error


# Disk space


class CleanParams(ActionParams):
    """What to clean; all that the settings allow if nothing else is said."""

    roots: Annotated[tuple[LimitedPath, ...], FailFast()] = Field(
        (), max_length=100, description="directories; every one that is allowed if not given"
    )
    older_than_us: int | None = Field(
        None, ge=0, description="how long a file must be untouched, microseconds; the setting's if not given"
    )
    dry_run: bool = Field(False, description="only tell what would be deleted")
    limit_bytes: int | None = Field(None, gt=0, description="delete no more than this")
    near: AbsolutePath | None = Field(
        None, description="only what lies on the file system of this path, where room is short"
    )
    for_condition: str = Field("", description="the condition that this is an answer to")


class ArchiveParams(ActionParams):
    """Which sessions, and where to, is in the settings alone."""

    near: AbsolutePath | None = Field(
        None, description="only if the sessions lie on the file system of this path, where room is short"
    )
    for_condition: str = Field("", description="the condition that this is an answer to")


CLEAN_PATHS = ActionDeclaration(
    names.CLEAN_PATHS,
    CleanParams,
    "Deletes what nobody touched for long beneath the directories that the settings name, and nowhere else.",
    concurrency=1,  # a process that reads the disk for long; a second one would find nothing more
    is_reserved=True,
)
ARCHIVE_SESSIONS = ActionDeclaration(
    names.ARCHIVE_SESSIONS,
    ArchiveParams,
    "Packs away the sessions that nobody touched for long, and deletes them once the archive was read back.",
    concurrency=1,
    is_reserved=True,
)

# Programs


class CommandParams(ActionParams):
    """What to run; `idempotent` says that running it twice does no harm, and is believed."""

    argv: Annotated[tuple[Word, ...], FailFast()] = Field(
        min_length=1, max_length=4_096, description="program and arguments"
    )
    idempotent: bool = Field(False, description="may be run again after a failure or a crash")
    cwd: str | None = Field(None, pattern=r"^/[^\x00]*$", description="working directory, an absolute path")
    timeout_s: float | None = Field(None, gt=0, le=86_400, description="seconds; the setting's if not given")
    for_condition: str = Field("", description="the condition that it answers")


class CollectParams(ActionParams):
    """What for; it stands in the bundle."""

    why: str = Field("", max_length=2_000, description="what the bundle is for")
    for_condition: str = Field("", description="the condition that it answers")


RUN_COMMAND = ActionDeclaration(
    names.RUN_COMMAND,
    CommandParams,
    "Runs a program that is allowed; a whole process tree ends with its timeout.",
    concurrency=8,  # a start of 48 programs at once would keep both the loop and the processors from a restart
)
COLLECT = ActionDeclaration(
    names.COLLECT,
    CollectParams,
    "Writes a bundle of what is known at this moment, for whoever looks into it later.",
    concurrency=1,  # a process that takes seconds of a processor
    is_reserved=True,
)

# Notices


class NoticeParams(ActionParams):
    """What to say."""

    title: str = Field(min_length=1, max_length=500, description="the notice in a few words")
    text: str = Field("", max_length=10_000, description="what is wrong, what was tried, what comes next")
    over: bool = Field(False, description="it is over: what the notices of this key told before")
    unwatched: bool = Field(
        False, description="with `over`: nobody looks at it any more, so that it is not known to be over"
    )
    once: bool = Field(
        False,
        description="it happened and does not last: nothing reminds of it, and nothing says that it is over",
    )
    severity: Literal["info", "warning", "error", "critical"] = Field(
        "warning", description="how bad it is, which decides about the addresses that it goes to"
    )


def is_known(topic: str, curr: Snapshot, is_over: bool = False) -> bool:
    """Whether no notice is needed: one was sent and no reminder is due; if `is_over`, whether no open notice exists."""
    told, remind = curr.notices[topic], curr.settings.notify.remind
    if told is None or told.over:
        return is_over
    return not is_over and (not remind or curr.now.since(told.last) < remind)


def notice_too_soon(effect: Effect, curr: Snapshot) -> str:
    """Say why no notice is needed, if none is."""
    is_over = bool(effect.params.get("over", False))
    if not is_known(effect.key.removeprefix(PREFIX), curr, is_over):
        return ""
    if is_over:
        return "nothing was told that would be over by it"
    remind = curr.settings.notify.remind
    again = f"told again every {duration_text(remind)}, [notify] remind" if remind else "told once"
    return f"it was told already ({again})"


NOTIFY = ActionDeclaration(
    names.NOTIFY,
    NoticeParams,
    "Sends what is begun together as one message; a notice that reached some addresses is sent to the others only.",
    too_soon=notice_too_soon,
)

# Processes


class InsteadOf(ActionParams):
    """The dead process that the new one is to replace."""

    pid: int
    started: int

    @property
    def found(self) -> ProcessId:
        """As an identity."""
        return ProcessId(self.pid, self.started)


class RestartParams(ActionParams):
    """Which process; with `instead_of` or `if_dead`, nothing that lives and answers is taken for dead."""

    process: str = Field(description="its name in the settings")
    instead_of: InsteadOf | None = Field(None, description="the one seen dying, which alone may be replaced")
    if_dead: bool = Field(False, description="do nothing if another one is up by now")
    fresh: bool = Field(False, description="the death was seen a moment before this was wished")
    only_start: bool = Field(
        False, description="the newest look found none of it alive: it is charged to the budget of starts"
    )
    needs: tuple[str, ...] = Field(
        (), description="what it depends on: it is not begun while one of these is down"
    )
    for_condition: str = Field("", description="the condition that this answers, as `memory`")


class Consumer(ActionParams):
    """One process and no other, and the pattern that allows to stop it."""

    pid: int = Field(gt=1)
    started: int = Field(description="its start time, clock ticks after boot")
    pattern: str = Field(description="one of `stop` under [resources]")


class StopParams(ActionParams):
    """Which process: a guarded one, or one that the settings allow to stop when memory is short."""

    process: str | None = Field(None, description="a guarded one's name in the settings")
    consumer: Consumer | None = None
    for_condition: str = Field("", description="the condition that this is an answer to")

    @model_validator(mode="after")
    def _one_of_both(self) -> "StopParams":
        if (self.process is None) == (self.consumer is None):
            raise ValueError("give either process, a name in the settings, or consumer")
        return self


def restart_objection(effect: Effect, state: State, now: Moment) -> str:
    """Object if the process was requested to be down by now, or what it depends on has died, as before a daemon's start.

    Of another rule than survival's, also if it has died itself: while that one's wish waits, survival could not start it.
    """
    if stop := _requested_stop(effect, state, now):
        return f"stopped by {stop.by} in the meantime"
    name = str(effect.params.get("process", ""))
    if not effect.survival and state.processes[name].up is None:
        return f"{name} went down in the meantime, and survival starts it"
    needs: Iterable[str] = effect.params.get("needs", ())
    down = ", ".join(name for name in needs if state.processes[name].up is None)
    return f"{down}, on which it depends, went down in the meantime" if down else ""


def stop_objection(effect: Effect, state: State, now: Moment) -> str:
    """Object if the guarded process need not be down any more."""
    is_taken_back = bool(effect.params.get("process")) and _requested_stop(effect, state, now) is None
    return "the stop was taken back in the meantime" if is_taken_back else ""


def _requested_stop(effect: Effect, state: State, now: Moment) -> Intent | None:
    stop = state.processes[str(effect.params.get("process", ""))].stop
    return stop if stop is not None and stop.holds(now) else None


def stop_refusal(effect: Effect, curr: Snapshot) -> str:
    """Refuse to stop a guarded process, which would be restarted at once."""
    if guarded := _guarded_process(effect, curr):
        return (
            f"{guarded.name} is guarded: survival would start again what a rule stops; wish for"
            f" {names.RESTART_PROCESS}"
        )
    return ""


def restart_too_soon(effect: Effect, curr: Snapshot) -> str:
    """Leave a process to survival until it has been up for its `healthy_after`, and to whoever wants it down.

    Otherwise a rule could keep it down by restarting it repeatedly.
    """
    process = _guarded_process(effect, curr)
    if process is None:
        return ""  # the append is refused, and says why
    if stop := _requested_stop(effect, curr.state, curr.now):
        return f"{stop.by} wants {process.name} down"
    up = curr.process(process.name).up
    if up is None:
        return f"{process.name} is not up: that is survival's to mend"
    needed = max(process.restart.healthy_after, MINUTE)
    return (
        f"{process.name} is up for less than {duration_text(needed)}" if curr.now.since(up) < needed else ""
    )


def _guarded_process(effect: Effect, curr: Snapshot) -> ProcessSettings | None:
    name = effect.params.get("process")
    return next((one for one in curr.settings.process if one.name == name), None)


RESTART_PROCESS = ActionDeclaration(
    names.RESTART_PROCESS,
    RestartParams,
    "Ends what is left of a process and starts it again; does nothing if another one is up by now.",
    exclusive_by="process",  # two restarts of one process at a time would leave two of it
    is_reserved=True,
    objection=restart_objection,
    too_soon=restart_too_soon,
)
STOP_PROCESS = ActionDeclaration(
    names.STOP_PROCESS,
    StopParams,
    "SIGTERM, ten seconds of patience, then the whole tree; a unit is stopped by systemd.",
    is_reserved=True,
    objection=stop_objection,
    refusal=stop_refusal,
)

# The engine


class RollbackParams(ActionParams):
    """The commit to go back to, the one that is rejected, and why."""

    to: str = Field(min_length=1, description="the commit to go back to")
    reject: str = Field(min_length=1, description="the commit that must be in force, and is rejected")
    why: str = ""
    while_failing: bool = Field(
        default=False, description="whether to give it up when an action of survival's works again"
    )


def rollback_objection(effect: Effect, state: State, now: Moment) -> str:
    """Object if it was wished for failures in a row, and the row has ended."""
    has_ended = bool(effect.params.get("while_failing")) and not state.engine.failures
    return "survival's actions work again in the meantime" if has_ended else ""


ROLLBACK_ENGINE = ActionDeclaration(
    names.ROLLBACK_ENGINE,
    RollbackParams,
    "Lets the commit before the one in force be in force again; done already if the rejected one is not any more.",
    is_reserved=True,
    objection=rollback_objection,
    refusal=lambda effect, curr: (
        "a rule may not take the engine back; wish for a notice, and let a person do it"
    ),
)

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
