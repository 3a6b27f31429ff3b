"""Restarts guarded processes that died, with backoff, and notifies a person only if that does not help.

The status of a process is computed from the log alone, the same for the rule and for people; what its newest look says of a
live one that does not serve is told beside it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from pulse_core.model.backoff import Backoff
from pulse_core.model.durations import duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment, utc_text
from pulse_core.model.names import INDISTINCT, RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.text import count, quoted, with_port_holder
from pulse_core.model.verdict import Verdict
from pulse_core.projections.effects import Phase
from pulse_core.projections.notices import Notice
from pulse_core.projections.processes import (
    STAYED_US,
    SYSTEMD,
    Intent,
    ProcessHistory,
    RestartRequest,
    Stage,
)
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.holds import told_as_held, was_due
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told, survival_effect
from pulse_core.settings.processes import ProcessSettings, RestartSettings

WATCHER = "process-alive"
BETWEEN_RESTARTS, OWN_BUDGET = "the pause between two restarts", "its own budget of restarts"
"""What holds a restart back, in the words of `held_by`."""
FRESH_US = 1_000_000
ORDER_US = 50_000
"""How long a dead process that depends on others waits: those that die in the same moment are known to be dead by then."""
START_GRACE_US = 250_000
"""The least grace period of a start: a look that began after it must have ended."""
UNSEEN_US = 10 * US_PER_SECOND
"""For how much longer a start has its grace while none has: a look takes no longer."""
STOP_TRIES = 5
STOP_PAUSE = 5 * US_PER_SECOND
"""How long a stop may take, beyond the time between two probes; doubled with each further try."""


class ProcessState(Enum):
    """The state of a guarded process."""

    UNKNOWN = "unknown"
    UP = "up"
    STOPPING = "stopping"
    STOPPED = "stopped"
    RESTARTING = "restarting"
    STARTING = "starting"
    WAITING = "waiting"
    BACKING_OFF = "backing-off"
    FLAPPING = "flapping"
    DOWN = "down"
    DUE = "due"
    SILENCED = "silenced"


class ProcessStatus(NamedTuple):
    """A state, microseconds until it may change by itself (None: only after an event), and why.

    stop: stop it in this tick; tell: Pulse's own actions did not help, so notify a person; held_by: what holds its restart
    back, the same words for as long as it does; waits_for: the names of those it depends on which hold it back.
    """

    state: ProcessState
    wait_us: int | None = None
    why: str = ""
    tell: bool = False
    stop: bool = False
    held_by: str = ""
    waits_for: tuple[str, ...] = ()

    def words(self, now: Moment | None = None) -> str:
        """Why, and when it is tried next: in how long, or, where that is read later, at what time. now: of this status."""
        if self.state not in PAUSED or self.wait_us is None:
            return self.why
        if now is None:
            return f"{self.why}; next try in {duration_text(self.wait_us)}"
        return f"{self.why}; next try at {utc_text(now.plus(self.wait_us).at)}"

    def note(self, name: str) -> str:
        """What the rule notes of the process of this name."""
        return f"{name}: {self.state.value}: {self.words()}"


LONG_US = 10 * US_PER_SECOND
"""For how long it must have been dead for its restart to say that it had waited for others."""
QUIET = frozenset({ProcessState.UP, ProcessState.UNKNOWN})
TITLES = {
    "flapping": "{} stays down",
    "stop": "{} does not stay down",
    "doubt": "nobody can tell whether {} is up",
}
"""What notices of a process are headed, by the beginning of their topic."""

PAUSED = frozenset({ProcessState.BACKING_OFF, ProcessState.FLAPPING})
ALIVE = frozenset({ProcessState.UP, ProcessState.STOPPING})


async def process_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart a guarded process that has died; stop one that a person wants down."""
    verdict = await inner(prev, curr)
    for process in curr.settings.process:
        look = newest_look(process.name, curr)
        status = evaluate_status(process, curr, look)
        if status.state is ProcessState.DUE:
            effect = restart_effect(process, status.why, look, curr)
            if was_due(effect, prev, curr) and is_dead_for(process.name, LONG_US, curr):
                before = evaluate_status(process, prev, newest_look(process.name, prev))
                if before.state is ProcessState.WAITING and before.waits_for:
                    effect = told_as_held(effect, f"it {_waits_for(before.waits_for)}")
            verdict = verdict.plus(effect)
        if status.stop:
            verdict = verdict.plus(stop_effect(process, curr))
        verdict = verdict.after_wait(status.wait_us)
        verdict = verdict.merged(still_down_notice(process, status, curr))
        verdict = verdict.merged(still_up_notice(process, status, curr))
        verdict = verdict.merged(doubt_notice(process, curr))
        if status.state not in QUIET:
            verdict = verdict.noting(status.note(process.name))
    return verdict.plus(*unguarded_notices(curr))


def is_dead_for(name: str, span_us: int, curr: Snapshot) -> bool:
    """Whether it has been dead for so long."""
    down = curr.process(name).down
    return down is not None and curr.now.since(down) >= span_us


def restart_effect(process: ProcessSettings, why: str, look: Mapping[str, Json], curr: Snapshot) -> Effect:
    """The effect that restarts it; it names the dead process so that no live one is replaced."""
    name, history = process.name, curr.process(process.name)
    key, reason = restart_key(name), f"{name} is {why}"
    params: dict[str, Json] = {"process": name}
    if history.up is None and look.get("pid") is None:
        params["only_start"] = True
    if history.request and not history.request.is_start:
        return survival_effect(RESTART_PROCESS, key, params, reason, curr.samples(WATCHER))
    dead = {"pid": history.pid, "started": history.started} if history.pid is not None else None
    if not dead and "started" in look and _failed_start(history, look):
        # A command or a unit's restart named none, and whoever stands there since it does not serve.
        dead = {"pid": look["pid"], "started": look["started"]}
    # Seen to die a moment ago: another probe before the restart would only cost time.
    fresh = history.down is not None and curr.now.since(history.down) < FRESH_US
    params |= {"instead_of": dead, "if_dead": True, "fresh": fresh}
    if process.depends_on:
        params["needs"] = [*process.depends_on]
    return survival_effect(RESTART_PROCESS, key, params, reason, curr.samples(WATCHER))


def stop_effect(process: ProcessSettings, curr: Snapshot) -> Effect:
    """The effect that stops it because a person requested that."""
    name, intent = process.name, curr.process(process.name).stop
    reason = f"{intent.by if intent else 'somebody'} wants {name} down"
    key = f"{STOP_PROCESS}:{name}"
    return survival_effect(STOP_PROCESS, key, {"process": name}, reason, curr.samples(WATCHER))


def still_down_notice(process: ProcessSettings, status: ProcessStatus, curr: Snapshot) -> Verdict:
    """Pulse's restarts did not bring it back, or it may make none; this is over when it has been up for `healthy_after`.

    If its budget is spent, it must have been up for as long as that counts, or a process that always dies a little
    later than `healthy_after` would be told again with each death.
    """
    name, history = process.name, curr.process(process.name)
    is_left = process.restart.max == 0
    topic, title = f"flapping:{name}", f"{name} is down" if is_left else TITLES["flapping"].format(name)
    if status.tell and status.state not in ALIVE:
        tried = charged_restarts(process.restart, history) or history.attempts
        began = tried[0] if tried else history.down
        text, printed = status.words(curr.now), ""
        if history.printed:
            # By the life that died last: what a later one prints that never came up is in its log alone.
            is_latest = history.starting is None
            heading = "It printed last:" if is_latest else "Before it was restarted it had printed:"
            printed = f"{heading}\n{quoted(history.printed)}"
        was_up = _was_healthy_after(curr.notices[topic], process.restart, history)
        notice = notify_unless_told(
            topic, title, text, curr, WATCHER, news=began, printed=printed, was_well=was_up
        )
        return Verdict(notice)
    if status.state is not ProcessState.UP or history.up is None or not is_told(topic, curr):
        return Verdict()
    age, restart = curr.now.since(history.up), process.restart
    is_spent = attempts_at_exhaustion(restart, charged_restarts(restart, history)) is not None
    needed = max(restart.healthy_after, restart.within if is_spent else 0)
    if (left := needed - age) > 0:
        return Verdict().after_wait(left)
    text = f"{name} is up for {duration_text(age)}, since {utc_text(history.up.at)}"
    return Verdict(notify_over(topic, title, text, curr, WATCHER))


def _was_healthy_after(told: Notice | None, restart: RestartSettings, history: ProcessHistory) -> bool:
    """Whether a restart since this notice made it healthy; it has died again since then."""
    later = [told is not None and one.moment.since(told.last) > 0 for one in history.recent]
    lives = [*(one.lived_us for one in history.recent[1:]), history.lived_us]
    return any(
        is_later and lived >= restart.healthy_after for is_later, lived in zip(later, lives, strict=False)
    )


def still_up_notice(process: ProcessSettings, status: ProcessStatus, curr: Snapshot) -> Verdict:
    """A person wants it down, and it is not; this is over when it has stayed down, or the stop has ended."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"stop:{name}", TITLES["stop"].format(name)
    stop = history.stop
    if status.tell and status.state in ALIVE:
        began = stop.moment if stop else None
        return Verdict(notify_unless_told(topic, title, status.why, curr, WATCHER, news=began))
    if not is_told(topic, curr):
        return Verdict()
    if stop is None or not stop.holds(curr.now):
        return Verdict(notify_over(topic, title, f"nobody wants {name} down any more", curr, WATCHER))
    if status.state is not ProcessState.STOPPED or history.up is not None or history.down is None:
        return Verdict()
    if (left := STAYED_US - curr.now.since(history.down)) > 0:
        return Verdict().after_wait(left)
    return Verdict(notify_over(topic, title, f"{name} is down", curr, WATCHER))


def doubt_notice(process: ProcessSettings, curr: Snapshot) -> Verdict:
    """It counts as up, and nobody can tell which one it is by `match`, `pid_file` or `tcp`: none is started or ended."""
    name, history = process.name, curr.process(process.name)
    topic, title = f"doubt:{name}", TITLES["doubt"].format(name)
    advice = f"make `{'match' if process.match else 'pid_file'}` exact"
    is_open = bool(process.match or process.pid_file)
    if process.tcp and INDISTINCT in history.evidence:  # else nobody sees who listens there
        is_open, advice = True, "recognise it by `pid_file` instead of `tcp`"
    if is_open and history.up is not None and history.pid is None:
        text = f"{history.evidence}; end what is not it, or {advice}"
        return Verdict(notify_unless_told(topic, title, text, curr, WATCHER))
    text = f"{name} is down" if history.up is None else f"{name} is process {history.pid}"
    return Verdict(notify_over(topic, title, text, curr, WATCHER))


def unguarded_notices(curr: Snapshot) -> Iterator[Effect]:
    """For each process that a person was told of and that is not guarded any more, that nobody looks at it."""
    guarded = {process.name for process in curr.settings.process}
    for topic in curr.notices.of:
        kind, _, name = topic.partition(":")
        if kind in TITLES and name not in guarded:
            up = curr.process(name).up
            was = f"; it was up by then, for {duration_text(curr.now.since(up))}" if up else ""
            gone = f"{name} is not guarded any more{was}"
            yield from notify_over(topic, TITLES[kind].format(name), "", curr, unwatched=gone)


# The status of a process


def newest_look(name: str, curr: Snapshot) -> Mapping[str, Json]:
    """What the newest sample says of a process."""
    last = curr.window(WATCHER).last
    said: Mapping[str, Json] = last.data.get(name, {}) if last else {}
    return said


def evaluate_status(
    process: ProcessSettings, curr: Snapshot, look: Mapping[str, Json] = MappingProxyType({})
) -> ProcessStatus:
    """The status of the process at this moment; look: what its newest sample says, for the words and for leftovers."""
    history = curr.process(process.name)
    if history.stop and history.stop.holds(curr.now):
        return _unwanted_status(process, history, history.stop, look, curr)
    if history.request and not history.request.is_start and (history.up or history.down):
        return _requested_status(process, history, history.request, curr)
    if history.up is not None:
        return ProcessStatus(ProcessState.UP, why=_what_is_seen(history, look))
    if history.down is None:
        return ProcessStatus(ProcessState.UNKNOWN, why="not looked at yet")
    return _dead_status(process, history, curr, look)


def _what_is_seen(history: ProcessHistory, look: Mapping[str, Json]) -> str:
    """What the newest look saw of one that is up: as it came up, it may have answered otherwise."""
    is_it = history.pid is not None and look.get("pid") == history.pid
    return (is_it and look.get("detail")) or history.evidence


# A process that a person wants restarted


def _requested_status(
    process: ProcessSettings, history: ProcessHistory, request: RestartRequest, curr: Snapshot
) -> ProcessStatus:
    """The status of a process until its restart is wished for: after those it depends on that are to be restarted, too."""
    waiting = ProcessState.WAITING if history.up is None else ProcessState.UP
    asked = _describe_request(request)
    told = asked if history.up is not None else f"down: {history.evidence}; {asked}"
    if curr.control.paused:
        why = f"{told}, and Pulse is paused by {curr.control.by}"
        return ProcessStatus(waiting, why=why, held_by=f"a pause of {curr.control.by}")
    restarting = curr.state.processes.restarting.values()
    if process.name in restarting:
        return ProcessStatus(ProcessState.RESTARTING, why=f"{asked}; its restart {_progress(process, curr)}")
    if missing := [name for name in process.depends_on if not _is_settled(name, curr)]:
        return _waiting(waiting, f"{told}; ", missing)
    return ProcessStatus(ProcessState.DUE, why=asked)


def _waiting(state: ProcessState, beginning: str, missing: Sequence[str]) -> ProcessStatus:
    """It waits for what it depends on."""
    by = f"{', '.join(missing)}, on which it depends"
    return ProcessStatus(state, why=beginning + _waits_for(missing), held_by=by, waits_for=tuple(missing))


def _waits_for(names: Sequence[str]) -> str:
    return f"waits for {', '.join(names)}"


def _describe_request(request: RestartRequest) -> str:
    what = "started" if request.is_start else "restarted"
    return f"to be {what}: {request.by} asked for it{f' ({request.why})' if request.why else ''}"


def _is_settled(name: str, curr: Snapshot) -> bool:
    """Whether it is up, and no restart of it is due, under way, or not confirmed yet."""
    history = curr.process(name)
    is_at_work = history.request or history.starting or name in curr.state.processes.restarting.values()
    return history.up is not None and not is_at_work


def _progress(process: ProcessSettings, curr: Snapshot) -> str:
    effect = curr.effects.by_key(restart_key(process.name))
    if effect and effect.phase is Phase.RETRYING:
        return f"is tried again soon: {count(effect.attempt, 'attempt')} failed, the last one: {effect.error}"
    return "waits for a slot" if effect and effect.phase is Phase.PENDING else "is under way"


def _is_retrying(process: ProcessSettings, curr: Snapshot, least: int = 0) -> bool:
    """Whether the restart under way has failed, at least so often, and is tried again: the machine is short of something."""
    effect = curr.effects.by_key(restart_key(process.name))
    return effect is not None and effect.phase is Phase.RETRYING and effect.attempt >= least


# A process that is dead and should run


def _dead_status(
    process: ProcessSettings, history: ProcessHistory, curr: Snapshot, look: Mapping[str, Json]
) -> ProcessStatus:
    if not process.autostart and not history.was_begun(curr.now.boot):
        why = f"autostart = false; start it: upulse process start {process.name}"
        return ProcessStatus(ProcessState.STOPPED, why=why)
    if paused := curr.control.paused:
        dead_for = duration_text(curr.now.since(history.down or paused))
        story = _describe_history(history, look, restarts_for_usage(process, curr))
        why = f"{story}; down for {dead_for}, and Pulse is paused by {curr.control.by}"
        return ProcessStatus(ProcessState.WAITING, why=why, held_by=f"a pause of {curr.control.by}")
    if process.name in curr.state.processes.restarting.values():
        what, progress, tell = (
            "restart",
            _progress(process, curr),
            _is_retrying(process, curr, process.restart.max),
        )
        state = ProcessState.RESTARTING
        if not _has_run(history):
            what = "start"
            state = ProcessState.WAITING if _is_retrying(process, curr) else ProcessState.STARTING
        return ProcessStatus(state, why=f"its {what} {progress}", tell=tell)
    if history.starting and (starting := _starting_status(process, history.starting, curr)):
        return starting
    if missing := [name for name in process.depends_on if curr.process(name).up is None]:
        return _waiting(
            ProcessState.WAITING, f"{': '.join(filter(None, ('down', history.evidence)))}; ", missing
        )
    if process.depends_on and history.down and (left := ORDER_US - curr.now.since(history.down)) > 0:
        return ProcessStatus(ProcessState.WAITING, left, "died just now, as what it depends on may have")
    if history.request:
        return ProcessStatus(ProcessState.DUE, why=_describe_request(history.request))
    holder = look.get("holder", "")
    if process.restart.max == 0:
        ran = "dead, and its budget allows no restart" if _has_run(history) else "not started"
        return ProcessStatus(ProcessState.DOWN, why=with_port_holder(f"{ran} (max = 0)", holder), tell=True)
    if stopper := _ended_stop(history):
        return ProcessStatus(
            ProcessState.DUE, why=f"to be started: the stop that {stopper} requested is over"
        )
    return _backoff_status(process, history, curr, look)


def _ended_stop(history: ProcessHistory) -> str:
    """Who requested the stop that has ended and left it down; empty if it is down for another reason."""
    stop = history.stop
    return stop.by if stop and stop.left_down(history) else ""


def _starting_status(process: ProcessSettings, started: Moment, curr: Snapshot) -> ProcessStatus | None:
    """The status of a process that was started then, as long as it is not known to have failed."""
    left = max(process.start_grace, START_GRACE_US) - curr.now.since(started)
    if left > 0:
        return ProcessStatus(
            ProcessState.STARTING, left, f"started, has {duration_text(left)} left to come up"
        )
    last, left = curr.window(WATCHER).last, left + UNSEEN_US
    if last is None or last.moment.since(started) >= START_GRACE_US or left <= 0:
        return None
    return ProcessStatus(ProcessState.STARTING, left, "started, and nobody has looked since")


def _backoff_status(
    process: ProcessSettings, history: ProcessHistory, curr: Snapshot, look: Mapping[str, Json]
) -> ProcessStatus:
    restart, now = process.restart, curr.now
    charged = charged_restarts(restart, history)
    failed, spent_at = _failed_attempts(history), attempts_at_exhaustion(restart, charged)
    spent = () if spent_at is None else charged
    story = _describe_history(history, look, restarts_for_usage(process, curr), spent)
    if spent_at is not None:
        delay = restart.pauses_when_spent.after(len(charged) - spent_at + 1)
    else:
        delay = restart.pauses.after(failed) if failed else 0
    tell = (
        spent_at is not None or len(history.charged) >= restart.max
    )  # within the window or not: restarts did not help
    # Since it last died or was last tried, whichever is later.
    left = delay - min(now.since(then) for then in (history.down, *history.attempts[-1:]) if then is not None)
    if left <= 0:
        return ProcessStatus(ProcessState.DUE, why=story, tell=tell)
    state, held_by = ProcessState.BACKING_OFF, BETWEEN_RESTARTS
    if spent_at is not None:
        state, held_by = ProcessState.FLAPPING, OWN_BUDGET
    return ProcessStatus(state, left, story, tell, held_by=held_by)


def _failed_attempts(history: ProcessHistory) -> int:
    """How many failed attempts the backoff counts: restarts in a row, and a first start that did not bring it up."""
    return len(history.charged) if history.stage is Stage.UP else len(history.attempts)


def charged_restarts(restart: RestartSettings, history: ProcessHistory) -> Sequence[Moment]:
    """The restarts that its budget is charged with: those since it was last up for the whole of the budget's window."""
    if history.lived_us >= restart.within:
        return ()
    calm = [number for number, one in enumerate(history.recent) if one.lived_us >= restart.within]
    return [one.moment for one in history.recent[calm[-1] if calm else 0 :]]


def restarts_for_usage(process: ProcessSettings, curr: Snapshot) -> frozenset[Moment]:
    """The restarts that were wished since it took more than it may, as far as they are remembered."""
    found, conditions = set[Moment](), curr.conditions
    for name in process.usage_conditions:
        standing = conditions[name]
        measures = standing.measures if standing else ()
        found.update(one.wished for one in measures if one.action == RESTART_PROCESS)
        found.update(conditions.tried.get(name, ()))
    return frozenset(found)


def attempts_at_exhaustion(restart: RestartSettings, attempts: Sequence[Moment]) -> int | None:
    """After how many attempts since it was last healthy the budget was first exhausted, or None if it is not."""
    span = restart.max
    if span == 0:
        return 0
    spans = range(span, len(attempts) + 1)
    return next((n for n in spans if attempts[n - 1].since(attempts[n - span]) < restart.within), None)


def restart_key(name: str) -> str:
    """The key that makes a process's restart unique among open effects."""
    return f"{RESTART_PROCESS}:{name}"


def _failed_start(history: ProcessHistory, look: Mapping[str, Json]) -> str:
    """Why a start has failed though its process lives, in words; empty if it is not known to live."""
    probe = look.get("probe", {})
    if history.starting is None or look.get("pid") is None or not probe.get("in_a_row"):
        return ""
    return f"its probe failed {count(probe['in_a_row'], 'time')} since its start: {probe.get('error', '')}"


def _has_run(history: ProcessHistory) -> bool:
    return history.stage is Stage.UP or history.start is not None or history.pid is not None


def _seen_last(history: ProcessHistory, look: Mapping[str, Json]) -> str:
    """Why it is down: how it died, or that it was started since and has not come up, of which its death says nothing."""
    if failed := _failed_start(history, look):
        return failed
    if history.starting is None or (history.down and history.starting.since(history.down) <= 0):
        return history.evidence
    what = "it" if history.pid is None else f"process {history.pid}"
    return f"{what} was started, and was not seen to come up"


def _describe_history(
    history: ProcessHistory,
    look: Mapping[str, Json],
    of_usage: Collection[Moment],
    used: Sequence[Moment] = (),
) -> str:
    """How it died, and after how many restarts; of_usage: those of them that no death was the reason of; used: those that
    have used up its budget, also if they made it healthy."""
    holder = look.get("holder", "")
    if history.intended and not history.attempts and not _has_run(history):
        return with_port_holder(history.evidence, holder)
    why = with_port_holder(history.error or _seen_last(history, look), holder)
    if history.stage < Stage.STARTED and history.attempts and not _has_run(history):
        return f"not started after {_tries(len(history.attempts))}: {why}"
    charged, spent = len(history.charged), len(used)
    after = count(charged or spent, "restart") if charged or spent else "its first start"
    if taking := sum(one in of_usage for one in history.charged or used):
        is_all = taking == (charged or spent)
        after += f"{'' if is_all else f', {taking} of them'} for taking too much memory or CPU"
    if (charged or spent) > history.restarts:  # some of them have started nothing
        after = f"{_tries(len(history.attempts) or spent)} to start it"
    times = f"dead after {after}" if _failed_attempts(history) or spent else "dead"
    if history.error and charged:  # the last one started nothing, and so did perhaps those before it
        times = f"still dead after {_tries(charged)} to restart it"
    if 0 < charged < spent:  # two numbers of restarts that are both told
        times = f"{times} since it was last healthy ({spent} count against its budget)"
    return f"{times}: {why}"


def _tries(number: int) -> str:
    return "1 try" if number == 1 else f"{number} tries"


# A process that a person wants down: stop it, check, stop it again, then notify


def _unwanted_status(
    process: ProcessSettings,
    history: ProcessHistory,
    stop: Intent,
    look: Mapping[str, Json],
    curr: Snapshot,
) -> ProcessStatus:
    """The status of a process while `stop`, which has not expired, wants it down."""
    left = stop.expires_us - curr.now.since(stop.moment)
    rest = f"for another {duration_text(left)}"
    if history.up is not None and stop.worked:
        # It went down, stayed down, and is up again: notify instead of stopping it.
        seen = _what_is_seen(history, look)
        why = f"{seen}, though {stop.by} wants it down {rest}: somebody started it"
        return ProcessStatus(ProcessState.UP, left, why, tell=True)
    is_down = history.up is None and history.starting is None and not _is_deaf(look)
    if stop.worked or (is_down and not _has_left(process, stop, look)):
        lasting = (
            rest
            if process.autostart
            else f"and autostart = false; start it: upulse process start {process.name}"
        )
        words = f"{stop.words}; left alone" if stop.by == SYSTEMD else stop.words
        return ProcessStatus(ProcessState.STOPPED, left, f"{words}, {lasting}")
    wanted = f"{stop.by} wants it down"
    if curr.control.paused:
        return ProcessStatus(ProcessState.STOPPING, why=f"{wanted}, and Pulse is paused by {curr.control.by}")
    if process.name in curr.state.processes.stopping.values():
        return ProcessStatus(ProcessState.STOPPING, why=f"{wanted}; its stop is under way")
    if stop.tried is None:
        return ProcessStatus(ProcessState.STOPPING, why=wanted, stop=True)
    times = "1 stop" if stop.tries == 1 else f"{stop.tries} stops"
    still = "what is left of it is not ended" if is_down else "it is still up"
    story = f"{wanted}, and {still} after {times}{f' ({stop.error})' if stop.error else ''}"
    first = STOP_PAUSE + curr.settings.watch.process_interval
    if (wait := Backoff(first, first << STOP_TRIES).after(stop.tries) - curr.now.since(stop.tried)) > 0:
        why = f"{story}; looked at again in {duration_text(wait)}"
        return ProcessStatus(ProcessState.STOPPING, wait, why)
    if stop.tries < STOP_TRIES:
        return ProcessStatus(ProcessState.STOPPING, why=story, stop=True)
    return ProcessStatus(ProcessState.STOPPING, left, f"{story}; not tried again", tell=True)


def _is_deaf(look: Mapping[str, Json]) -> bool:
    """Whether it lives and does not serve, which counts as dead while it should run, but not where it is to be down."""
    return look.get("pid") is not None and bool(look.get("probe", {}).get("in_a_row"))


def _has_left(process: ProcessSettings, stop: Intent, look: Mapping[str, Json]) -> bool:
    """Whether something of its lives is there that no stop has ended yet: it had died before this one was requested."""
    is_left = bool(look.get("leftovers")) and process.kill == "tree"
    return is_left and stop.tries < STOP_TRIES and (stop.tries == 0 or bool(stop.error))
