"""The history of each guarded process: up or down since when, restarts, and requested stops."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    Effect,
    EffectAcked,
    EffectFailed,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    SettingsLoaded,
)
from pulse_core.model.moment import TICK_US, US_PER_SECOND, Moment
from pulse_core.model.names import RESTART_PROCESS, SETTLING, STOP_PROCESS
from pulse_core.model.payload import decode_plain
from pulse_core.projections.effects import Source, decode_plain_effect, source_of

ATTEMPTS = 1_000
SYSTEMD = "systemd"
STAYED_US = 60 * US_PER_SECOND
"""How long it must stay down after a stop before its coming up again is no longer that stop's failure."""


class Intent(NamedTuple):
    """A stop that was requested: since when, for how many microseconds, and by whom.

    tries: stops wished for it; tried: when the last of them was wished or settled; error: what that one said;
    worked: it went down and stayed so; seen: what a manager said of its unit, which may not tell why that is down.
    """

    moment: Moment
    expires_us: int
    by: str
    tries: int = 0
    tried: Moment | None = None
    error: str = ""
    worked: bool = False
    seen: str = ""

    def holds(self, now: Moment) -> bool:
        """Whether it has not expired."""
        return now.since(self.moment) < self.expires_us

    def left_down(self, history: "ProcessHistory | _History") -> bool:
        """Whether the process is down since it held, and nothing has been started since."""
        return history.down is not None and self.holds(history.down) and not history.attempts

    @property
    def words(self) -> str:
        """By whom it was stopped; of a unit, what was seen of it."""
        return self.seen if self.by == SYSTEMD else f"stopped by {self.by}"

    def words_about(self, name: str) -> str:
        """The same in a sentence about this process."""
        return f"{name}: {self.words}" if self.by == SYSTEMD else f"{name} is {self.words}"


class RestartRequest(NamedTuple):
    """A restart that a person asked for, and no effect has been wished for yet: when, who, and why.

    is_start: only if it is not up.
    """

    moment: Moment
    by: str
    why: str
    is_start: bool = False


class LastStart(NamedTuple):
    """The newest start that worked: the effect's id, and the process that was started.

    logged: the byte of its log at which its output begins; None if that is not known, or the output is not there;
    settings: the sum of what it was started with, as `start`; empty if that is not known.
    """

    effect: str
    pid: int
    started: int
    logged: int | None = None
    settings: str = ""


class Stage(IntEnum):
    """The furthest stage that a process has reached: what first brings it up is a start, not a restart."""

    NEW = 0
    WISHED = 1
    STARTED = 2
    UP = 3


class Restart(NamedTuple):
    """A restart that was wished: when, and how long it had been up since the one before it, in microseconds."""

    moment: Moment
    lived_us: int


class ProcessHistory(NamedTuple):
    """The recorded history of one guarded process.

    pid and started: the process last known to be it, in boot `boot`; up / down: since when it is alive or dead (neither
    before the first look; up from its own start if it was up then); starting: when a restart was acked that no look has
    confirmed; attempts: starts wished since it was last healthy; free: the first of them is its first start of all, which
    no budget is charged with; first: the id of that effect (the last wish before it was ever started or up); restarts: all
    acked ones but its first start; recent: the last restarts, however healthy it was between them; lived_us: how long it
    has lived since the last of them;
    request: a restart that a person waits for; start: what Pulse started last, which may have left another process to stand
    for it; unlogged: why its output is not in its log; printed: what the last one that died had printed last;
    cause: the id of its last death, or of what a person requested since; renewed: when a person last requested a start,
    stop or restart, with which its budget begins anew; intended and last_seen: as its last death says; unguarded: when it
    was last taken out of the settings; guarded: when it was put back after that.
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
    request: RestartRequest | None = None
    evidence: str = ""
    recent: tuple[Restart, ...] = ()
    lived_us: int = 0
    start: LastStart | None = None
    unlogged: str = ""
    printed: str = ""
    cause: str = ""
    renewed: Moment | None = None
    intended: bool = False
    last_seen: int = 0
    unguarded: Moment | None = None
    guarded: Moment | None = None

    def down_for(self, now: Moment) -> str:
        """Who wanted it down, if it is down and that holds; else empty."""
        return self.stop.by if self.stop and self.up is None and self.stop.holds(now) else ""

    @property
    def charged(self) -> tuple[Moment, ...]:
        """The restarts wished since it was last healthy: what its budget is charged with."""
        return self.attempts[1:] if self.free else self.attempts

    def was_begun(self, boot: str) -> bool:
        """Whether it is to be started, or was in this boot, or found up, and nobody has asked for a stop since."""
        tried = bool(self.request) or (bool(self.attempts) and self.attempts[-1].boot == boot)
        return self.stop is None and (tried or (self.boot == boot and self.stage >= Stage.STARTED))


UNKNOWN_HISTORY = ProcessHistory()


@dataclass(frozen=True, slots=True)
class Processes:
    """Histories by the process's name, and the open restarts and stops by the effect's id."""

    of: Mapping[str, ProcessHistory] = field(default_factory=dict)
    restarting: Mapping[str, str] = field(default_factory=dict)
    stopping: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> ProcessHistory:
        return self.of.get(name, UNKNOWN_HISTORY)

    def __iter__(self) -> Iterator[str]:
        return iter(self.of)


_History = SimpleNamespace
"""A `ProcessHistory` that the fold of one batch may change: it has the same fields, and `more` of its `recent`."""

_EFFECT, _UP, _SETTINGS = Effect.kind, ProcessUp.kind, SettingsLoaded.kind


class _ProcessTable(dict[str, _History]):
    """A private working copy for one fold: a history is copied once for a batch, not once for an event."""

    def __init__(self, before: Processes) -> None:
        self.before = before
        self.restarting, self.stopping = dict(before.restarting), dict(before.stopping)

    def __missing__(self, name: str) -> _History:
        history = self[name] = _History(**self.before[name]._asdict(), more=[])
        return history

    def state(self) -> Processes:
        of = dict(self.before.of)
        for name, history in self.items():
            values = vars(history)
            if more := values.pop("more"):
                values["recent"] = (history.recent + tuple(more))[-ATTEMPTS:]
            of[name] = ProcessHistory(**values)
        return Processes(of, self.restarting, self.stopping)

    def request(self, event: Event) -> None:
        wish = decode_plain_effect(event.data)
        action, name = wish.get("action"), str(wish.get("params", {}).get("process", ""))
        if not wish:  # redacted: its key still says what it was, and that counts
            action, _, name = event.subject.partition(":")
        if action != RESTART_PROCESS and action != STOP_PROCESS:
            return  # most effects are about something else
        if action == RESTART_PROCESS:
            self.restarting[event.id] = name
            if source_of(event.data) is not Source.RULES:  # it could use up the budget of starts after deaths
                _request_restart(self[name], event)
        else:
            self.stopping[event.id] = name
            if stop := self.before[name].stop if name not in self else self[name].stop:
                self[name].stop = stop._replace(tries=stop.tries + 1, tried=event.moment)

    def settle(self, event: Event) -> None:
        if name := self.restarting.pop(event.subject, None):
            if event.kind == EffectAcked.kind and '"already"' in event.data:
                self.claim(name, event.boot, decode_plain(event.data).get("result", {}))
            _settle_restart(self[name], event)
        elif name := self.stopping.pop(event.subject, None):
            _settle_stop(self[name], event)

    def claim(self, name: str, boot: str, data: Mapping[str, Json]) -> None:
        """Let the process that stands for this name from now on stand for no other: its life is this one's, too."""
        pid, it, own = data.get("pid"), (data.get("started"), boot), self[name]
        if pid is None or (pid == own.pid and it == (own.started, own.boot)):
            return
        known: Mapping[str, Any] = {**self.before.of, **self}
        for other, one in known.items():
            if pid == one.pid and it == (one.started, one.boot) and other != name:
                lost = self[other]
                own.start, lost.start = lost.start or own.start, None
                lost.pid = lost.started = lost.up = lost.down = lost.starting = None


def after(state: Processes, events: Iterable[Event]) -> Processes:
    """The histories after more events."""
    table = _ProcessTable(state)
    for event in events:
        kind = event.kind
        if kind == _EFFECT:
            table.request(event)
        elif kind in SETTLING:
            table.settle(event)
        elif kind == _SETTINGS:
            loaded = decode_plain(event.data)
            for name in loaded.get("gone", ()):
                _not_guarded(table[name], event.moment)
            for name in loaded.get("processes", ()):
                if (known := table.get(name, state.of.get(name))) and known.unguarded and not known.guarded:
                    table[name].guarded = event.moment
        elif change := CHANGES.get(kind):
            data = decode_plain(event.data)
            if kind == _UP:
                table.claim(event.subject, event.boot, data)
            change(table[event.subject], event, data)
    return table.state()


def _request_restart(history: _History, event: Event) -> None:
    # The first ones say when the budget was spent, the last one when it was last tried.
    now, history.starting = event.moment, None
    asked, history.request = history.request, None
    is_stop_over = bool(history.stop and history.stop.left_down(history))
    history.attempts = (*history.attempts[: ATTEMPTS - 1], now)
    if history.stage is not Stage.NEW:  # its first start of all is no restart
        if is_stop_over or (asked and not asked.is_start):  # what a person wanted is charged to no budget
            history.free = True
        else:
            lives = 0 if history.up is None else now.since(history.up)
            history.more.append(Restart(now, max(history.lived_us, lives)))
        history.lived_us = 0
    if history.stage < Stage.STARTED:
        history.free = history.free or history.stage is Stage.NEW
        history.first, history.stage = event.id, Stage.WISHED


def _settle_restart(history: _History, event: Event) -> None:
    """Take the outcome of a restart."""
    data = decode_plain(event.data)
    if event.kind != EffectAcked.kind:
        if event.kind == EffectFailed.kind:
            history.error = data.get("error", "")
        return
    result = data.get("result", {})
    history.error, history.stage = "", max(history.stage, Stage.STARTED)
    if "already" not in result:
        history.restarts += event.subject != history.first
        history.unlogged = str(result.get("unlogged", ""))
        if "pid" in result and "started" in result:
            more = (result.get("logged"), str(result.get("settings", "")))
            history.start = LastStart(event.subject, result["pid"], result["started"], *more)
        if history.stop:  # it was under way when that was requested, and what it started no stop has ended
            history.stop = history.stop._replace(tries=0, tried=None, error="")
    # A restart that names no process (a command, a unit) leaves nothing to hold on to but the next look.
    if "pid" in result or history.up is None:
        # The death of a live one that it replaced may not be known yet.
        is_known = history.up is not None and result.get("pid") == history.pid
        history.starting = history.starting if is_known else event.moment
        history.pid, history.started, history.boot = result.get("pid"), result.get("started"), event.boot


def _settle_stop(history: _History, event: Event) -> None:
    """Take the outcome of a stop; whether it helped, only the next probe shows."""
    stop: Intent | None = history.stop
    if stop is None or not stop.tries:
        return  # the intent has ended, or the stop belonged to an earlier one
    if event.kind == EffectAcked.kind:
        history.stop, history.starting = stop._replace(tried=event.moment, error=""), None
        return
    data = decode_plain(event.data)
    error = data.get("error") or data.get("why") or ""
    history.stop = stop._replace(tried=event.moment, error=error)


def _up(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    stop: Intent | None = history.stop
    if stop is not None:  # the intent of a manager has ended, a person's has not
        stayed = bool(stop.tries and history.down and event.moment.since(history.down) >= STAYED_US)
        history.stop = None if stop.by == SYSTEMD else stop._replace(worked=stop.worked or stayed)
    is_found = history.starting is None and data.get("pid") != history.pid
    history.unlogged = data.get("unlogged", "") or ("" if is_found else history.unlogged)
    history.pid, history.started, history.boot = data.get("pid"), data.get("started"), event.boot
    history.evidence, history.stage = data.get("evidence", ""), Stage.UP
    if history.request and history.request.is_start:
        history.request = None
    is_new = history.up is None or history.starting is not None
    up = _since_its_start(event, data) if is_found and history.down is None else event.moment
    history.up, history.down, history.starting = up if is_new else history.up, None, None


def _since_its_start(event: Event, data: Mapping[str, Json]) -> Moment:
    """When one that was up before anything was known of it was started, as far as it is known to the kernel."""
    started = data.get("started")
    lived = 0 if started is None else max(0, event.mono - started * TICK_US)
    return event.moment.plus(-lived)


def _died(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    down, up, history.cause = event.moment, history.up, event.id
    # What died after its replacement was started was replaced: the new one has its grace.
    replaced = history.pid is not None and data.get("pid") not in (None, history.pid)
    history.starting = down if replaced or data.get("recovering") else None
    history.intended, history.last_seen = data.get("intended", False), data.get("last_seen", 0)
    replacing: tuple[Moment, ...] = ()  # the restart of one that lived, wished before that ended it
    if up is not None and history.intended:
        replacing = tuple(wish for wish in history.attempts[-1:] if down.since(wish) <= down.since(up))
    if up is not None:  # it came up, so that it has not died of a restart that failed before
        history.error = ""
    if up is not None and not replacing:
        history.lived_us = max(history.lived_us, down.since(up))
    history.up, history.down, history.evidence = None, down, data.get("evidence", "")
    history.printed = data.get("printed", "")
    if data.get("healthy"):
        history.free, history.error = history.free and replacing == history.attempts, ""
        history.attempts = replacing


def _stopped(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    seen = str(data.get("evidence", ""))
    history.stop = Intent(event.moment, data.get("expires_us", 0), SYSTEMD, worked=True, seen=seen)
    history.starting = None


def _stop_requested(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    _forget_failures(history, event)
    history.stop, history.request = Intent(event.moment, data.get("expires_us") or 0, event.actor), None


def _start_requested(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    _forget_failures(history, event)
    if history.up is None:  # else a restart that was requested and still waits is kept
        history.request = RestartRequest(event.moment, event.actor, data.get("why", ""), is_start=True)


def _not_guarded(history: _History, now: Moment) -> None:
    """What was wrong with it is over, and nobody waits for it: guarded again, it begins anew. Who stands for it,
    and whether a person has stopped it, is known still."""
    stop = history.stop
    _begin_anew(history)
    history.down = history.starting = history.request = None
    history.stop, history.stage = stop, Stage.NEW if history.up is None else history.stage
    history.unguarded, history.guarded = now, None


def _forget_failures(history: _History, event: Event) -> None:
    history.cause, history.renewed = event.id, event.moment
    _begin_anew(history)


def _begin_anew(history: _History) -> None:
    history.attempts, history.free, history.error, history.stop = (), False, "", None
    history.recent, history.more = (), []
    history.stage = Stage.UP if history.stage is Stage.UP else Stage.NEW


def _restart_requested(history: _History, event: Event, data: Mapping[str, Json]) -> None:
    _forget_failures(history, event)
    history.request = RestartRequest(event.moment, event.actor, data.get("why", ""))


CHANGES: Mapping[str, Callable[[_History, Event, Mapping[str, Json]], None]] = {
    ProcessUp.kind: _up,
    ProcessDied.kind: _died,
    ProcessStopped.kind: _stopped,
    ProcessStopRequested.kind: _stop_requested,
    ProcessStartRequested.kind: _start_requested,
    ProcessRestartRequested.kind: _restart_requested,
}
KINDS = frozenset({*CHANGES, Effect.kind, SettingsLoaded.kind, *SETTLING})
