"""Plans the restart of a process because of a condition, with the budget and the pauses of one that has died."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pulse_core.model.durations import duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.names import RESTART_PROCESS, RUN_COMMAND
from pulse_core.model.text import count
from pulse_core.projections.conditions import FOR, Condition, Measure
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules.survival.notices import notify_over, survival_effect, topic_text
from pulse_core.rules.survival.process_watchdog import (
    BETWEEN_RESTARTS,
    attempts_at_exhaustion,
    charged_restarts,
    restart_key,
)
from pulse_core.settings.processes import ProcessSettings


class RestartPlan(NamedTuple):
    """The plan for a process with a condition: restart it, notify a person, both, or
    wait for `wait_us` microseconds (None: until an event); why; what holds a restart back that is known to be needed; and
    since when its budget is spent, until it is tried once more: a person who was told before is told of that, too."""

    why: str
    restart: ProcessSettings | None = None
    tell: bool = False
    wait_us: int | None = None
    held_by: str = ""
    spent: Moment | None = None


def last_started(name: str, state: State, now: Moment) -> Moment | None:
    """When the process was last started according to the log: found up, or a restart of it settled."""
    known = (state.processes[name].up, state.effects.settled_at.get(restart_key(name)))
    return min((moment for moment in known if moment is not None), key=now.since, default=None)


def excuse_of(name: str, grace: int, state: State, now: Moment) -> str:
    """Why a process, which has so many microseconds after its start, need not be well at this moment; empty if it must."""
    history = state.processes[name]
    if history.stop and history.stop.holds(now):
        return history.stop.words_about(name)
    if state.effects.by_key(restart_key(name)):
        return f"the restart of {name} is under way"
    if history.up is None:
        return f"{name} is not up"
    start = last_started(name, state, now)
    if start is not None and (left := grace - now.since(start)) > 0:
        return f"{name} was started, and has {duration_text(left)} left to answer"
    return ""


def restart_hold(process: ProcessSettings, curr: Snapshot) -> str:
    """Why a process that lives need not be well, or can't be restarted, at this moment; empty if it can."""
    if excuse := excuse_of(process.name, 0, curr.state, curr.now):
        return excuse
    request = curr.process(process.name).request
    if request and not request.is_start:
        return f"{process.name} is restarted since {request.by} asked for it"
    if missing := [other for other in process.depends_on if curr.process(other).up is None]:
        return f"{process.name} depends on {', '.join(missing)}, which is not up"
    return ""


def plan_restart(process: ProcessSettings, name: str, condition: Condition, curr: Snapshot) -> RestartPlan:
    """Plan what to do about the condition of this name, which a restart may end, as far as the budget allows."""
    tried = tries_of(condition)
    restart = process.restart
    if restart.max == 0:
        return RestartPlan(f"the budget of {process.name} allows no restart (max = 0)", tell=True)
    charged = restarts_for(process, name, condition, curr)
    spent_at, left = attempts_at_exhaustion(restart, charged), 0
    if charged:  # the pauses are those of a dead process
        pause = restart.pauses.after(len(charged))
        if spent_at is not None:
            pause = restart.pauses_when_spent.after(len(charged) - spent_at + 1)
        left = pause - since_last_restart(process.name, charged, curr)
    if left <= 0:
        return RestartPlan(f"restarting {process.name}", restart=process, tell=bool(tried))
    why, by = (
        (
            f"its budget is spent by {count(len(charged), 'restart')}",
            f"the budget of restarts of {process.name}",
        )
        if spent_at is not None
        else ("it was restarted lately", f"{BETWEEN_RESTARTS} of {process.name}")
    )
    words = f"held back: {why}; {process.name} is tried again in {duration_text(left)}"
    spent = curr.effects.settled_at.get(restart_key(process.name)) if spent_at == len(charged) else None
    return RestartPlan(words, tell=bool(tried) or spent_at is not None, wait_us=left, held_by=by, spent=spent)


def condition_restart(process: ProcessSettings, name: str, reason: str, curr: Snapshot, *keys: str) -> Effect:
    """The restart of a process that answers the condition of this name. keys: the watchers whose newest samples are its
    evidence."""
    params = {"process": process.name, FOR: name}
    return survival_effect(RESTART_PROCESS, restart_key(process.name), params, reason, curr.samples(*keys))


def tries_of(condition: Condition, action: str = RESTART_PROCESS) -> tuple[Measure, ...]:
    """What was tried since the condition stands, oldest first: the restarts, or the effects of another action."""
    return tuple(measure for measure in condition.measures if measure.action == action)


DONE = {RESTART_PROCESS: "{} was restarted", RUN_COMMAND: "{!r} was run"}
TRIED = {RESTART_PROCESS: "a restart of {} was tried", RUN_COMMAND: "{!r} was tried"}
"""What is said of an action of which one failed, which may not even have begun."""


def describe_tries(condition: Condition, action: str, what: str, curr: Snapshot) -> str:
    """How often something was done, and what became of the last time; empty if it was not. what: the process or program."""
    if not (tried := tries_of(condition, action)):
        return ""
    last = tried[-1]
    # A restart is done when what was there has ended and the next one runs, which may take as long as `stop_timeout`.
    done = last.settled if last.settled and last.worked else last.wished
    how = f"last {duration_text(curr.now.since(done))} ago"
    failed = f", which failed: {last.told}" if last.settled and not last.worked else ""
    times = "once" if len(tried) == 1 else f"{len(tried)} times"
    did = TRIED if any(one.settled and not one.worked for one in tried) else DONE
    return f"{did[action].format(what)} {times}, {how}{failed}"


TRIES = {RESTART_PROCESS: "restart", RUN_COMMAND: "command"}
"""What is counted in the notice that a condition is over."""


def over_notices(
    beginning: str,
    title_of: Callable[[str], str],
    words_of: Callable[[str], str],
    curr: Snapshot,
    *keys: str,
) -> Iterator[Effect]:
    """The notice that it is over, with what was tried, for each open one about a condition whose name begins so.

    words_of: how it is over, by the condition's name.
    """
    wrong = {topic_text(name) for name in curr.conditions.raised}
    for topic, notice in curr.notices.of.items():
        if topic.startswith(beginning) and not notice.over and topic not in wrong:
            measures = curr.conditions.last.get(topic, ())
            is_again = len(curr.conditions.tried.get(topic, ())) > len(measures)
            tried = _tried(measures)
            over = f"{words_of(topic)}{tried}{' this time' if tried and is_again else ''}"
            gone = curr.conditions.unwatched.get(topic, "")
            yield from notify_over(topic, title_of(topic), over, curr, *keys, unwatched=gone)


def _tried(measures: Sequence[Measure]) -> str:
    """What was done before it was over, and how much of that had failed; empty if nothing was."""
    its = [one for one in measures if one.action in TRIES]
    failed = sum(bool(one.settled) and not one.worked for one in its)
    counted = Counter(one.action for one in its)
    tried = " and ".join(count(counted[action], noun) for action, noun in TRIES.items() if counted[action])
    if failed == len(its):
        return f", though {tried} failed" if tried else ""
    return f"; tried before: {tried}" + (f", of which {failed} failed" if failed else "")


def restarts_for(process: ProcessSettings, name: str, condition: Condition, curr: Snapshot) -> list[Moment]:
    """The restarts that its budget is charged with, oldest first: those of a death, of this episode, and of those before it.

    Those before a person last requested a start or restart are forgotten; those before this episode, and those of a process
    that died again and again, also if the condition was over for `healthy_after` in between; and so is what was tried long
    before anything else was.
    """
    now, renewed = curr.now, curr.process(process.name).renewed
    charged = {measure.wished for measure in tries_of(condition)}
    charged.update(charged_restarts(process.restart, curr.process(process.name)))
    well = curr.conditions.cleared.get(name)
    if well is None or now.since(well) - now.since(condition.since) < process.restart.healthy_after:
        charged.update(curr.process(process.name).charged, curr.conditions.tried.get(name, ()))
    if renewed:
        charged = {moment for moment in charged if now.since(moment) <= now.since(renewed)}
    ordered = sorted(charged, key=now.since, reverse=True)
    pause = max(process.restart.within, 2 * process.restart.pauses_when_spent.longest)
    pauses = (n for n in range(len(ordered) - 1, 0, -1) if ordered[n].since(ordered[n - 1]) > pause)
    return ordered[next(pauses, 0) :]


def since_last_restart(name: str, charged: list[Moment], curr: Snapshot) -> int:
    """Microseconds since it was last restarted: of very many attempts, not each is known."""
    settled = curr.effects.settled_at.get(restart_key(name))
    return min(curr.now.since(moment) for moment in (charged[-1], settled) if moment is not None)
