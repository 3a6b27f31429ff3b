"""Restarts the process behind an LLM endpoint that fails, and notifies a person if that did not help."""

from collections.abc import Iterator
from typing import NamedTuple

from pulse_core.llm.endpoint import DOWN, PREFIX, excuse_for, name_of, process_of, process_started
from pulse_core.llm.settings import LlmSettings, endpoints_of
from pulse_core.model.durations import rough_duration
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.names import RESTART_PROCESS
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import FOR, Condition, Measure
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.network_watchdog import outage_reason
from pulse_core.rules.survival.notices import notify_over, notify_unless_told, survival_effect, topic_text
from pulse_core.rules.survival.process_watchdog import attempts_at_exhaustion, restart_key
from pulse_core.settings.processes import ProcessSettings

KEY, PROCESSES = "llm", "process-alive"


class EndpointPlan(NamedTuple):
    """The plan for an endpoint that fails: restart its process, notify a person, both, or
    wait for `wait_us` microseconds (None: until an event); and why."""

    why: str
    restart: ProcessSettings | None = None
    tell: bool = False
    wait_us: int | None = None


async def llm_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart the process behind an endpoint that fails, with backoff, and notify if that does not help."""
    verdict = (await inner(prev, curr)).plus(*over_notices(curr))
    for llm in {llm.url: llm for llm in endpoints_of(curr.settings)}.values():
        condition = curr.conditions[name_of(llm)]
        if condition is None:
            continue
        plan, name = plan_endpoint(llm, condition, curr), name_of(llm)
        verdict = verdict.noting(f"{llm.url}: {plan.why}")
        if plan.tell:
            words = describe_endpoint(llm.restart, condition, plan, curr)
            told = notify_unless_told(name, f"{llm.url} gives no good answer", words, curr, KEY)
            verdict = verdict.plus(*told)
        if plan.restart:
            params = {"process": plan.restart.name, FOR: name}
            reason = f"{llm.url} gives no good answer: {condition.evidence}"
            key, samples = restart_key(plan.restart.name), curr.samples(KEY, PROCESSES)
            verdict = verdict.plus(survival_effect(RESTART_PROCESS, key, params, reason, samples))
        verdict = verdict.after_wait(plan.wait_us)
    return verdict


def plan_endpoint(llm: LlmSettings, condition: Condition, curr: Snapshot) -> EndpointPlan:
    """Plan what to do about a raised condition now."""
    process = process_of(llm, curr.settings)
    excuse = excuse_for(llm, curr.settings, curr.state, curr.now)
    if held := excuse or outage_reason(llm.url, condition, curr):
        return EndpointPlan(f"held back: {held}")
    if process is None:
        return EndpointPlan("no process is named that could be restarted", tell=True)
    if condition.state != DOWN:
        return EndpointPlan(f"no restart of {process.name} mends that", tell=True)
    if missing := [name for name in process.depends_on if curr.process(name).up is None]:
        return EndpointPlan(f"held back: {process.name} depends on {', '.join(missing)}, which is not up")
    tried = restarts_tried(condition)
    if not is_proven(llm, curr):
        failed = bool(tried) and not tried[-1].worked
        return EndpointPlan("held back: not yet proven since it was last well or restarted", tell=failed)
    restart, name = process.restart, process.name
    if restart.max == 0:
        return EndpointPlan(f"the budget of {name} allows no restart (max = 0)", tell=True)
    charged = charged_restarts(llm, process, condition, curr)
    spent_at, left = attempts_at_exhaustion(restart, charged), 0
    if charged:  # the pauses are those of a dead process
        pause = restart.pauses.after(len(charged))
        if spent_at is not None:
            pause = restart.pauses_when_spent.after(len(charged) - spent_at + 1)
        left = pause - since_last_restart(name, charged, curr)
    if left <= 0:
        return EndpointPlan(f"restarting {name}", restart=process, tell=bool(tried))
    why = "its budget is spent" if spent_at is not None else "it was restarted lately"
    words = f"held back: {why}; {name} is tried again in {rough_duration(left)}"
    return EndpointPlan(words, tell=bool(tried) or spent_at is not None, wait_us=left)


def since_last_restart(name: str, charged: list[Moment], curr: Snapshot) -> int:
    """Microseconds since it was last restarted: of very many attempts, not each is known."""
    settled = curr.effects.settled_at.get(restart_key(name))
    return min(curr.now.since(moment) for moment in (charged[-1], settled) if moment is not None)


def is_proven(llm: LlmSettings, curr: Snapshot) -> bool:
    """Whether the newest sample has enough failures in a row, all of them after its process had its grace."""
    newest = curr.window(KEY).last
    if newest is None or not newest.data.get(llm.url, {}).get("proven"):
        return False
    start = process_started(llm, curr.state, curr.now)
    return start is None or curr.now.since(newest.moment) <= curr.now.since(start) - llm.grace


def restarts_tried(condition: Condition) -> tuple[Measure, ...]:
    """The restarts that were tried since the condition stands, oldest first."""
    return tuple(measure for measure in condition.measures if measure.action == RESTART_PROCESS)


def charged_restarts(
    llm: LlmSettings, process: ProcessSettings, condition: Condition, curr: Snapshot
) -> list[Moment]:
    """The restarts that its budget is charged with, oldest first: of this episode, and of those before it.

    Those before it, and those of a process that died again and again, are forgotten if the endpoint was well for
    `healthy_after` in between; and so is what was tried long before anything else was.
    """
    now, name = curr.now, name_of(llm)
    charged = {measure.wished for measure in restarts_tried(condition)}
    well = curr.conditions.cleared.get(name)
    if well is None or now.since(well) - now.since(condition.since) < process.restart.healthy_after:
        charged.update(curr.process(process.name).charged, curr.conditions.tried.get(name, ()))
    ordered = sorted(charged, key=now.since, reverse=True)
    pause = max(process.restart.within, 2 * process.restart.pauses_when_spent.longest)
    pauses = (n for n in range(len(ordered) - 1, 0, -1) if ordered[n].since(ordered[n - 1]) > pause)
    return ordered[next(pauses, 0) :]


def describe_endpoint(process: str | None, condition: Condition, plan: EndpointPlan, curr: Snapshot) -> str:
    """Describe what is wrong, what was tried, and what comes next."""
    parts = [f"{condition.evidence}, for {rough_duration(curr.now.since(condition.since))}"]
    if tried := restarts_tried(condition):
        last = tried[-1]
        how = f"last {rough_duration(curr.now.since(last.wished))} ago"
        failed = f", which failed: {last.told}" if last.settled and not last.worked else ""
        times = "once" if len(tried) == 1 else f"{len(tried)} times"
        parts.append(f"{process} was restarted {times}, {how}{failed}")
    return "; ".join([*parts, plan.why])


def over_notices(curr: Snapshot) -> Iterator[Effect]:
    """The notice that it is over, for every endpoint with an open notice that is well, or not watched."""
    wrong = {topic_text(name) for name in curr.conditions.raised}
    for topic, notice in curr.notices.of.items():
        if topic.startswith(PREFIX) and not notice.over and topic not in wrong:
            tried = sum(one.action == RESTART_PROCESS for one in curr.conditions.last.get(topic, ()))
            after = f", after {tried} restart{'s' * (tried > 1)}" if tried else ""
            words = f"it answers, or is not watched any more{after}"
            yield from notify_over(topic, topic.removeprefix(PREFIX), words, curr, KEY)
