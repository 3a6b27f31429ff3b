"""What became of each guarded process: up or down since when, what was tried, what a person wants."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from pulse_core.model.actions import RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.effect_kinds import SETTLING
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectFailed,
    ProcessDied,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import plain
from pulse_core.projections.effects import plain_wish

ATTEMPTS = 1_000
SYSTEMD = "systemd"
STAYED_US = 60 * US_PER_SECOND
"""How long it must stay down after a stop before its coming up again is no longer that stop's failure."""


class Intent(NamedTuple):
    """Somebody wants the process down: since when, for how many microseconds, and who.

    tries: stops wished for it; tried: when the last of them was wished or settled; error: what that one said;
    worked: it went down and stayed so.
    """

    moment: Moment
    expires_us: int
    by: str
    tries: int = 0
    tried: Moment | None = None
    error: str = ""
    worked: bool = False

    def holds(self, now: Moment) -> bool:
        """Whether it has not expired."""
        return now.since(self.moment) < self.expires_us


class Stage(IntEnum):
    """How far a process has ever come: what brings it up for the first time is a start, not a restart."""

    NEW = 0
    WISHED = 1
    STARTED = 2
    UP = 3


class ProcessHistory(NamedTuple):
    """One guarded process, as far as the log knows it.

    pid and started: the process last known to be it, in boot `boot`; up / down: since when it is alive or
    dead (one of them, or neither before the first look); starting: when a restart was acked that no look
    has confirmed; attempts: starts wished since it was last healthy; free: the first of them is its first
    start of all, which no budget is charged with; first: the id of the effect that is (the last wish before
    it was ever started or up); restarts: all that were acked, but its first start.
    """

    pid: int | None = None
    started: int | None = None
    boot: str = ""
    up: Moment | None = None
    down: Moment | None = None
    starting: Moment | None = None
    attempts: tuple[Moment, ...] = ()
    free: bool = False
    first: str = ""
    stage: Stage = Stage.NEW
    restarts: int = 0
    error: str = ""
    stop: Intent | None = None
    evidence: str = ""

    @property
    def charged(self) -> tuple[Moment, ...]:
        """The restarts wished since it was last healthy: what its budget is charged with."""
        return self.attempts[1:] if self.free else self.attempts


NOBODY_KNOWS = ProcessHistory()


@dataclass(frozen=True, slots=True)
class Processes:
    """Histories by the process's name, and the open restarts and stops by the effect's id."""

    of: Mapping[str, ProcessHistory] = field(default_factory=dict)
    restarting: Mapping[str, str] = field(default_factory=dict)
    stopping: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> ProcessHistory:
        return self.of.get(name, NOBODY_KNOWS)


def after(state: Processes, events: Iterable[Event]) -> Processes:
    """The histories after more events."""
    of, restarting, stopping = dict(state.of), dict(state.restarting), dict(state.stopping)
    for event in events:
        if event.kind == Effect.kind:
            _wished(of, restarting, stopping, event)
        elif event.kind in SETTLING:
            if name := restarting.pop(event.subject, None):
                of[name] = _settled(of.get(name, NOBODY_KNOWS), event)
            elif name := stopping.pop(event.subject, None):
                of[name] = _stop_settled(of.get(name, NOBODY_KNOWS), event)
        elif notice := NEWS.get(event.kind):
            of[event.subject] = notice(of.get(event.subject, NOBODY_KNOWS), event, plain(event.data))
    return Processes(of, restarting, stopping)


def _wished(
    of: dict[str, ProcessHistory], restarting: dict[str, str], stopping: dict[str, str], event: Event
) -> None:
    wish = plain_wish(event.data)
    action = wish.get("action")
    if action != RESTART_PROCESS and action != STOP_PROCESS:
        return  # most effects are about something else
    name = str(wish.get("params", {}).get("process", ""))
    history = of.get(name, NOBODY_KNOWS)
    if action == RESTART_PROCESS:
        restarting[event.id] = name
        of[name] = _restart_wished(history, event)
    else:
        stopping[event.id] = name
        if stop := history.stop:
            of[name] = history._replace(stop=stop._replace(tries=stop.tries + 1, tried=event.moment))


def _restart_wished(history: ProcessHistory, event: Event) -> ProcessHistory:
    # The first ones say when the budget was spent, the last one when it was last tried.
    attempts = (*history.attempts[: ATTEMPTS - 1], event.moment)
    if history.stage >= Stage.STARTED:
        return history._replace(attempts=attempts, starting=None)
    free = history.free or history.stage is Stage.NEW
    return history._replace(attempts=attempts, starting=None, free=free, first=event.id, stage=Stage.WISHED)


def _settled(history: ProcessHistory, event: Event) -> ProcessHistory:
    """What a restart has come to."""
    data = plain(event.data)
    if event.kind == EffectFailed.kind:
        return history._replace(error=data.get("error", ""))
    if event.kind != EffectAcked.kind:
        return history
    result = data.get("result", {})
    restarts = history.restarts + (event.subject != history.first and "already" not in result)
    stage = max(history.stage, Stage.STARTED)
    # A restart that names no process (a command, a unit) leaves nothing to hold on to but the next look.
    if "pid" not in result and history.up is not None:
        return history._replace(restarts=restarts, error="", stage=stage)
    starting = history.starting if history.up is not None else event.moment
    return history._replace(
        restarts=restarts, error="", stage=stage, starting=starting,
        pid=result.get("pid"), started=result.get("started"), boot=event.boot,
    )  # fmt: skip


def _stop_settled(history: ProcessHistory, event: Event) -> ProcessHistory:
    """What a stop has come to; whether it helped, only the next look says."""
    stop = history.stop
    if stop is None or not stop.tries:
        return history  # nobody wants it down any more, or it was the stop of an earlier intent
    if event.kind == EffectAcked.kind:
        return history._replace(stop=stop._replace(tried=event.moment, error=""), starting=None)
    data = plain(event.data)
    error = data.get("error") or data.get("why") or ""
    return history._replace(stop=stop._replace(tried=event.moment, error=error))


def _up(history: ProcessHistory, event: Event, data: Mapping[str, Json]) -> ProcessHistory:
    return history._replace(
        pid=data.get("pid"), started=data.get("started"), boot=event.boot, evidence=data.get("evidence", ""),
        stage=Stage.UP, stop=_stop_of_one_up(history, event),
        up=history.up or event.moment, down=None, starting=None,
    )  # fmt: skip


def _died(history: ProcessHistory, event: Event, data: Mapping[str, Json]) -> ProcessHistory:
    down = event.moment
    # What died after its replacement was started was replaced: the new one has its grace.
    replaced = history.pid is not None and data.get("pid") not in (None, history.pid)
    starting = down if replaced or data.get("recovering") else None
    evidence = data.get("evidence", "")
    if not data.get("healthy"):
        return history._replace(up=None, down=down, starting=starting, evidence=evidence)
    return history._replace(
        up=None, down=down, starting=starting, evidence=evidence,
        attempts=(), free=False, error="",
    )  # fmt: skip


def _stopped(history: ProcessHistory, event: Event, data: Mapping[str, Json]) -> ProcessHistory:
    stop = Intent(event.moment, data.get("expires_us", 0), SYSTEMD, worked=True)
    return history._replace(stop=stop, starting=None)


def _stop_requested(history: ProcessHistory, event: Event, data: Mapping[str, Json]) -> ProcessHistory:
    return history._replace(stop=Intent(event.moment, data.get("expires_us") or 0, event.actor))


def _start_requested(history: ProcessHistory, event: Event, data: Mapping[str, Json]) -> ProcessHistory:
    stage = Stage.UP if history.stage is Stage.UP else Stage.NEW
    return history._replace(attempts=(), free=False, error="", stop=None, stage=stage)


NEWS: Mapping[str, Callable[[ProcessHistory, Event, Mapping[str, Json]], ProcessHistory]] = {
    ProcessUp.kind: _up,
    ProcessDied.kind: _died,
    ProcessStopped.kind: _stopped,
    ProcessStopRequested.kind: _stop_requested,
    ProcessStartRequested.kind: _start_requested,
}
KINDS = frozenset({*NEWS, Effect.kind, *SETTLING})


def _stop_of_one_up(history: ProcessHistory, event: Event) -> Intent | None:
    """What is left of the wish to have it down, now that it is up: a manager's is over, a person's is not."""
    stop, down = history.stop, history.down
    if stop is None or stop.by == SYSTEMD:
        return None
    stayed = bool(stop.tries and down and event.moment.since(down) >= STAYED_US)
    return stop._replace(worked=stop.worked or stayed)
