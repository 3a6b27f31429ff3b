"""Restarts the process behind an LLM endpoint that fails, and notifies a person if that did not help."""

from collections.abc import Mapping

from pulse_core.llm.endpoint import DOWN, PREFIX, excuse_for, name_of, process_of, process_started, times
from pulse_core.llm.settings import LlmSettings, endpoints_of
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import RESTART_PROCESS
from pulse_core.model.text import count
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.network_watchdog import outage_reason
from pulse_core.rules.survival.notices import notify_unless_told
from pulse_core.rules.survival.restart_plan import (
    RestartPlan,
    condition_restart,
    describe_tries,
    over_notices,
    plan_restart,
    restart_hold,
    tries_of,
)

KEY, PROCESSES = "llm", "process-alive"


async def llm_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart the process behind an endpoint that fails, with backoff, and notify if that does not help."""
    verdict = (await inner(prev, curr)).plus(*over_notices(PREFIX, url_of, lambda _: "it answers", curr, KEY))
    for llm in {llm.url: llm for llm in endpoints_of(curr.settings)}.values():
        condition = curr.conditions[name_of(llm)]
        if condition is None:
            continue
        plan, name = plan_endpoint(llm, condition, curr), name_of(llm)
        verdict = verdict.noting(f"{llm.url}: {plan.why}").holding(name, plan.held_by)
        if plan.tell:
            words = describe_endpoint(llm, condition, plan, curr)
            title = f"{llm.url} gives no good answer"
            told = notify_unless_told(name, title, words, curr, KEY, news=plan.spent)
            verdict = verdict.plus(*told)
        if plan.restart:
            reason = f"{llm.url} gives no good answer: {seen(name, condition, curr) or condition.evidence}"
            verdict = verdict.plus(condition_restart(plan.restart, name, reason, curr, KEY, PROCESSES))
        verdict = verdict.after_wait(plan.wait_us)
    return verdict


def plan_endpoint(llm: LlmSettings, condition: Condition, curr: Snapshot) -> RestartPlan:
    """Plan what to do about a raised condition now."""
    process = process_of(llm, curr.settings)
    excuse = excuse_for(llm, curr.settings, curr.state, curr.now)
    if held := excuse or outage_reason(llm.url, condition, curr):
        return RestartPlan(f"held back: {held}")
    newest = curr.window(KEY).last
    if not curr.has_looked(KEY) or (newest and llm.url not in newest.data):
        return RestartPlan("held back: nobody has asked since the daemon began")
    if process is None:
        return RestartPlan("no process is named that could be restarted", tell=True)
    if condition.state != DOWN:
        return RestartPlan(f"no restart of {process.name} mends that", tell=True)
    if held := restart_hold(process, curr):
        return RestartPlan(f"held back: {held}")
    tried = tries_of(condition)
    if not (seen := counted_answers(llm, curr)).get("proven"):
        failed, words = bool(tried) and not tried[-1].worked, "it answered when it was asked last"
        if not seen.get("ok"):
            words = f"{seen.get('failures', 0)} of {count(llm.evidence, 'question')} in a row, which it takes, failed"
            words += f" since it last answered or {process.name} was started"
        return RestartPlan(f"held back: {words}", tell=failed)
    return plan_restart(process, name_of(llm), condition, curr)


def counted_answers(llm: LlmSettings, curr: Snapshot) -> Mapping[str, Json]:
    """What the newest sample says of it, if that is of after its process had its grace; empty if not."""
    newest, start = curr.window(KEY).last, process_started(llm, curr.state, curr.now)
    if newest is None or (start and curr.now.since(newest.moment) > curr.now.since(start) - llm.grace):
        return {}
    said: Mapping[str, Json] = newest.data.get(llm.url, {})
    return said


def describe_endpoint(llm: LlmSettings, condition: Condition, plan: RestartPlan, curr: Snapshot) -> str:
    """Describe what is wrong, what was tried, and what comes next."""
    wrong = f"{seen(name_of(llm), condition, curr) or condition.evidence}, {condition.age(curr.now)}"
    did = describe_tries(condition, RESTART_PROCESS, llm.restart or "", curr)
    return "; ".join(filter(None, (wrong, did, plan.why)))


def seen(name: str, condition: Condition, curr: Snapshot) -> str:
    """What its newest answer shows, if that is of after what raised its condition, which may have failed otherwise; empty
    if not."""
    newest = curr.window(KEY).last
    if newest is None or newest.moment.since(condition.seen or condition.changed) < US_PER_SECOND:
        return ""
    said = newest.data.get(url_of(name), {})
    parts = (said.get("detail", ""), said.get("excused") and f"that counts for nothing: {said['excused']}")
    failed = said.get("failures") and f"{times(said['failures'])} failed"
    return "; ".join(filter(None, (*parts, failed))) if parts[0] else ""


def url_of(name: str) -> str:
    """The URL that a condition or a topic is about."""
    return name.removeprefix(PREFIX)
