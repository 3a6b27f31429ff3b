"""Answers guarded processes that take more memory or CPU than they may: a notice, or a restart if the settings say so."""

from pulse_core.model.durations import duration_text
from pulse_core.model.names import PROCESS_USAGE, RESTART_PROCESS, USAGE
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import Snapshot
from pulse_core.rules.measurements import described, described_by_sample
from pulse_core.rules.onion import Inner
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
from pulse_core.settings.processes import ProcessSettings


async def usage_guard(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Restart a process that takes too much for long, if that is allowed, and tell a person else, or if it did not help."""
    over = over_notices(USAGE, title_of, lambda name: over_words(name, curr), curr, PROCESS_USAGE)
    verdict = (await inner(prev, curr)).plus(*over)
    for process in curr.settings.process:
        for name in process.usage_conditions:
            if (condition := curr.conditions[name]) is None:
                continue
            plan = plan_usage(process, name, condition, curr)
            verdict = (
                verdict.noting(f"{name}: {plan.why}").after_wait(plan.wait_us).holding(name, plan.held_by)
            )
            if plan.tell:
                did = describe_tries(condition, RESTART_PROCESS, process.name, curr)
                parts = (described(name, condition, curr), did, plan.why)
                words = "; ".join(filter(None, parts))
                title = title_of(name)
                verdict = verdict.plus(
                    *notify_unless_told(name, title, words, curr, PROCESS_USAGE, news=plan.spent)
                )
            if plan.restart:
                reason = restart_reason(process, name, condition, curr)
                verdict = verdict.plus(condition_restart(process, name, reason, curr, PROCESS_USAGE))
    return verdict


def over_words(name: str, curr: Snapshot) -> str:
    """How it is over: what the process takes now. Whether that is less is not said, since its bound may have been raised."""
    return described_by_sample(name, curr) or "it takes no more than it may"


def restart_reason(process: ProcessSettings, name: str, condition: Condition, curr: Snapshot) -> str:
    """What it is restarted for: what raised the condition, or after a restart for it what the new one takes."""
    up, now = curr.process(process.name).up, described_by_sample(name, curr)
    if not (tries_of(condition) and up and now):
        return condition.evidence
    return f"{now}, {duration_text(curr.now.since(up))} after the last restart"


def plan_usage(process: ProcessSettings, name: str, condition: Condition, curr: Snapshot) -> RestartPlan:
    """Plan what to do about a process that takes more than it may."""
    interval = curr.settings.watch.usage_interval
    if not curr.has_looked(PROCESS_USAGE):
        return RestartPlan("held back: nobody has looked since the daemon began", wait_us=interval)
    if curr.process(process.name).up is None and process.then == "tell":
        return RestartPlan(f"{process.name} is not up, and takes nothing")
    if process.then == "tell":
        return RestartPlan('nothing but a notice follows; then = "restart" would restart it', tell=True)
    if held := restart_hold(process, curr):
        return RestartPlan(f"held back: {held}")
    tried, up = tries_of(condition), curr.process(process.name).up
    if tried and up is not None and (left := process.for_ - curr.now.since(up)) > 0:
        # Who takes as much from the start on is not restarted all the time: it has as long again as it had to be known for.
        return RestartPlan(f"restarted, has {duration_text(left)} to take less", wait_us=left)
    looked = curr.window(PROCESS_USAGE).last
    if up is not None and looked and looked.moment.since(up) < process.for_:
        return RestartPlan("what it takes since it was started is not known yet", wait_us=interval)
    return plan_restart(process, name, condition, curr)


def title_of(name: str) -> str:
    """The title of this condition in a notice."""
    process, _, what = name.removeprefix(USAGE).rpartition(":")
    return f"{process} takes too much {'CPU' if what == 'cpu' else 'memory'}"
