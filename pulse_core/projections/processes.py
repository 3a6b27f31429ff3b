"""What became of each guarded process: up or down since when, what was tried, what a person wants."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    SETTLING,
    Effect,
    EffectAcked,
    EffectFailed,
    ProcessDied,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
)
from pulse_core.model.moment import Moment
from pulse_core.projections.effects import wish_in

ATTEMPTS = 1_000
RESTART, STOP = "restart-process", "stop-process"
TOLD = "notify:flapping:"
SYSTEMD = "systemd"


class Intent(NamedTuple):
    """Somebody wants the process down: since when, for how many microseconds, and who."""

    moment: Moment
    expires_us: int
    by: str
    tried: bool = False

    def holds(self, now: Moment) -> bool:
        """Whether it has not expired."""
        return now.since(self.moment) < self.expires_us


class ProcessHistory(NamedTuple):
    """One guarded process, as far as the log knows it.

    pid and started: the process last known to be it, in boot `boot`; up / down: since when it is alive or
    dead (one of them, or neither before the first look); starting: when a restart was acked that no look
    has confirmed; attempts: restarts wished since it was last healthy; restarts: all that were acked.
    """

    pid: int | None = None
    started: int | None = None
    boot: str = ""
    up: Moment | None = None
    down: Moment | None = None
    starting: Moment | None = None
    attempts: tuple[Moment, ...] = ()
    restarts: int = 0
    error: str = ""
    told: Moment | None = None
    stop: Intent | None = None
    evidence: str = ""


NOBODY_KNOWS = ProcessHistory()


@dataclass(frozen=True, slots=True)
class Processes:
    """Histories by the process's name, and the open restarts by the effect's id."""

    of: Mapping[str, ProcessHistory] = field(default_factory=dict)
    restarting: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> ProcessHistory:
        return self.of.get(name, NOBODY_KNOWS)


KINDS = frozenset(
    {
        ProcessUp.kind,
        ProcessDied.kind,
        ProcessStopped.kind,
        ProcessStopRequested.kind,
        ProcessStartRequested.kind,
        Effect.kind,
        *SETTLING,
    }
)


def after(state: Processes, events: Iterable[Event]) -> Processes:
    """The histories after more events."""
    of, restarting = dict(state.of), dict(state.restarting)
    for event in events:
        if event.kind == Effect.kind:
            _wished(of, restarting, event)
        elif event.kind in SETTLING:
            if name := restarting.pop(event.subject, None):
                of[name] = _settled(of.get(name, NOBODY_KNOWS), event)
        elif event.kind in KINDS:
            of[event.subject] = _noticed(of.get(event.subject, NOBODY_KNOWS), event)
    return Processes(of, restarting)


def _wished(of: dict[str, ProcessHistory], restarting: dict[str, str], event: Event) -> None:
    if event.subject.startswith(TOLD):
        name = event.subject.removeprefix(TOLD)
        of[name] = of.get(name, NOBODY_KNOWS)._replace(told=event.moment)
    if f'"{RESTART}"' not in event.data and f'"{STOP}"' not in event.data:
        return  # most effects are about something else: not worth decoding
    wish = wish_in(event.data)
    name = str(wish.params.get("process", ""))
    history = of.get(name, NOBODY_KNOWS)
    if wish.action == RESTART:
        restarting[event.id] = name
        # The first ones say when the budget was spent, the last one when it was last tried.
        attempts = (*history.attempts[: ATTEMPTS - 1], event.moment)
        of[name] = history._replace(attempts=attempts, starting=None)
    elif wish.action == STOP and history.stop:
        of[name] = history._replace(stop=history.stop._replace(tried=True))


def _settled(history: ProcessHistory, event: Event) -> ProcessHistory:
    match event.payload:
        case EffectAcked(result=result):
            # A restart that names no process (a command, a unit) leaves nothing to hold on to but the next look.
            if "pid" not in result and history.up is not None:
                return history._replace(restarts=history.restarts + 1, error="")
            pid, started = result.get("pid"), result.get("started")
            tried = history._replace(pid=pid, started=started, boot=event.boot, error="")
            if history.up is not None:
                return tried._replace(restarts=history.restarts + 1)
            return tried._replace(starting=event.moment, restarts=history.restarts + 1)
        case EffectFailed(error=error):
            return history._replace(error=error)
        case _:
            return history


def _noticed(history: ProcessHistory, event: Event) -> ProcessHistory:
    match event.payload:
        case ProcessUp(pid=pid, started=started, evidence=evidence):
            stop = None if history.stop and history.stop.by == SYSTEMD else history.stop
            found = history._replace(pid=pid, started=started, boot=event.boot, evidence=evidence, stop=stop)
            return found._replace(up=history.up or event.moment, down=None, starting=None)
        case ProcessDied(healthy=healthy, evidence=evidence, recovering=recovering):
            starting = event.moment if recovering else None
            dead = history._replace(up=None, down=event.moment, starting=starting, evidence=evidence)
            return dead._replace(attempts=(), told=None, error="") if healthy else dead
        case ProcessStopped(expires_us=expires_us):
            return history._replace(stop=Intent(event.moment, expires_us, SYSTEMD, tried=True))
        case ProcessStopRequested(expires_us=expires_us):
            return history._replace(stop=Intent(event.moment, expires_us or 0, event.actor))
        case ProcessStartRequested():
            return history._replace(stop=None, attempts=(), told=None, error="")
        case _:
            return history
