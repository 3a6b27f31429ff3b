"""Answers checks that fail: a notice, a restart, or a command that mends it, and a notice if that did not help."""

from dataclasses import replace
from typing import NamedTuple

from pulse_core.checks.conclusions import (
    KEY,
    PREFIX,
    UNKNOWN,
    command_key,
    excuse_for,
    is_outdated,
    name_of,
    newest_words,
)
from pulse_core.checks.outcomes import is_source_of
from pulse_core.checks.settings import CHECKS, TELL, CheckSettings
from pulse_core.model.backoff import Backoff
from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import RESTART_PROCESS, RUN_COMMAND
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import FOR, Condition
from pulse_core.projections.notices import PREFIX as NOTICE
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.error_escalate import STORM
from pulse_core.rules.survival.network_watchdog import outage_reason
from pulse_core.rules.survival.notices import notify_unless_told, survival_effect, topic_text
from pulse_core.rules.survival.restart_plan import (
    condition_restart,
    describe_tries,
    over_notices,
    plan_restart,
    restart_hold,
    tries_of,
)

LONGEST_PAUSE = UNITS["d"]
OVERDUE = UNITS["m"]
"""How long a command may be wished for and not begun, as where it is not allowed, before a person is told."""


NEWS = 5 * US_PER_SECOND
"""How long what raised a check is told as it was, however often it is looked at."""


class CheckPlan(NamedTuple):
    """The plan for a check that fails: what is requested, whether a person is told, microseconds until that may change
    by itself (None: only after an event), what holds back an answer that is known to be needed, and since when its tries
    are used up; and why."""

    why: str
    request: Effect | None = None
    tell: bool = False
    wait_us: int | None = None
    held_by: str = ""
    spent: Moment | None = None


async def check_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Do what is to follow from each check that fails, and tell a person if it says so, or if that did not help."""
    checks = CHECKS.of(curr.settings)
    over = over_notices(PREFIX, _short_title, lambda name: _how_well(name, curr), curr, KEY)
    verdict = (await inner(prev, curr)).plus(*over)
    if any(check.log for check in checks):
        verdict = _without_lines(checks, verdict, curr)
    for check in checks:
        name = name_of(check)
        if (condition := curr.conditions[name]) is None:
            continue
        plan = plan_check(check, condition, curr)
        verdict = verdict.noting(f"{name}: {plan.why}").after_wait(plan.wait_us).holding(name, plan.held_by)
        if plan.tell:
            text = describe_check(check, condition, plan, curr)
            title = f"{_short_title(name)} fails"
            told = notify_unless_told(name, title, text, curr, KEY, news=plan.spent, severity=check.severity)
            verdict = verdict.plus(*told)
        if plan.request:
            verdict = verdict.plus(plan.request)
    return verdict


def plan_check(check: CheckSettings, condition: Condition, curr: Snapshot) -> CheckPlan:
    """Plan what to do about a check that fails now."""
    excuse = excuse_for(check, curr.state, curr.now)
    if held := excuse or (outage_reason(check.http, condition, curr) if check.http else ""):
        return CheckPlan(f"held back: {held}")
    newest = curr.window(KEY).last
    if not curr.has_looked(KEY) or (newest and check.name not in newest.data):
        return CheckPlan("held back: nobody has looked since the daemon began")
    if check.then == TELL:
        return CheckPlan("nothing but a notice follows", tell=True)
    if condition.state == UNKNOWN:
        return CheckPlan("nothing is done while nobody can look", tell=True)
    process = next((one for one in curr.settings.process if one.name == check.restart), None)
    if process and (held := restart_hold(process, curr)):
        return CheckPlan(f"held back: {held}")
    tried = tries_of(condition, RESTART_PROCESS if process else RUN_COMMAND)
    failed = bool(tried) and not tried[-1].worked
    if process is None and failed and len(tried) >= check.tries:
        return plan_command(check, condition, curr)
    if not is_proven(check, curr):
        what = "that helped" if tried else "it is still so"
        return CheckPlan(f"another look will say whether {what}", tell=failed)
    if process is None:
        return plan_command(check, condition, curr)
    plan, name = plan_restart(process, name_of(check), condition, curr), name_of(check)
    reason = f"check {check.name} fails: {_what_is_seen(check, condition, curr)}"
    restart = condition_restart(plan.restart, name, reason, curr, KEY) if plan.restart else None
    return CheckPlan(plan.why, restart, plan.tell, plan.wait_us, plan.held_by, plan.spent)


def is_proven(check: CheckSettings, curr: Snapshot) -> bool:
    """Whether the newest sample has enough bad looks in a row, all of them after something was last done about it."""
    newest = curr.window(KEY).last
    if newest is None or not newest.data.get(check.name, {}).get("proven"):
        return False
    return not is_outdated(newest.moment, check, curr.state, curr.now)


def plan_command(check: CheckSettings, condition: Condition, curr: Snapshot) -> CheckPlan:
    """Plan to run the command that mends it, which may be tried only so often, with pauses in between."""
    tried, key = tries_of(condition, RUN_COMMAND), command_key(check)
    if len(tried) >= check.tries:
        by = "the number of its tries"
        words, spent = "it is not run again before it is well", curr.effects.settled_at.get(key)
        return CheckPlan(words, tell=True, held_by=by, spent=spent)
    done = curr.effects.settled_at.get(key)
    pause = Backoff(check.pause, LONGEST_PAUSE).after(max(1, len(tried)))
    if done is not None and (left := pause - curr.now.since(done)) > 0:
        words, by = (
            f"it is run again in {duration_text(left)}",
            "the pause between two tries" if tried else "",
        )
        return CheckPlan(words, tell=bool(tried), wait_us=left, held_by=by)
    params = {"argv": list(check.run), FOR: name_of(check)}
    reason = f"check {check.name} fails: {_what_is_seen(check, condition, curr)}"
    request = survival_effect(RUN_COMMAND, key, params, reason, curr.samples(KEY))
    lasted = curr.now.since(condition.since)
    if tried or lasted < OVERDUE:
        wait_us = None if tried else OVERDUE - lasted
        return CheckPlan(f"running {check.run[0]!r}", request, bool(tried), wait_us)
    return CheckPlan(
        f"{check.run[0]!r} should run, and does not: see upulse config check", request, tell=True
    )


def describe_check(check: CheckSettings, condition: Condition, plan: CheckPlan, curr: Snapshot) -> str:
    """Describe what is wrong, what was tried, and what comes next."""
    lasted = curr.now.since(condition.began)
    parts = [_what_is_seen(check, condition, curr), condition.age(curr.now) if lasted >= UNITS["m"] else ""]
    if check.restart:
        parts.append(describe_tries(condition, RESTART_PROCESS, check.restart, curr))
    if check.runs:
        parts.append(describe_tries(condition, RUN_COMMAND, check.run[0], curr))
    return "; ".join(filter(None, (*parts, "" if check.then == TELL else plan.why)))


def _what_is_seen(check: CheckSettings, condition: Condition, curr: Snapshot) -> str:
    """What raised it, until another look has told more: an age or a size that was true then is another one by now."""
    since = curr.now.since(condition.seen or condition.changed)
    is_new = since < max(min(check.every, UNITS["m"]), NEWS)
    return ("" if is_new else newest_words(check, curr)) or condition.described(curr.now)


def _how_well(name: str, curr: Snapshot) -> str:
    """That it is well, and by which words if only since its bound was changed."""
    newest = curr.window(KEY).last
    rebound = newest.data.get(name.removeprefix(PREFIX), {}).get("rebound") if newest else ""
    return f"it is well by its new bound: {rebound}" if rebound else "it is well"


def _short_title(name: str) -> str:
    return f"check {name.removeprefix(PREFIX)}"


def _without_lines(checks: tuple[CheckSettings, ...], verdict: Verdict, curr: Snapshot) -> Verdict:
    """The verdict without notices about the lines that a check counts, unless critical ones or a storm are among them."""
    quiet = {
        NOTICE + topic_text(STORM + source)
        for source, history in curr.logs.of.items()
        if any(is_source_of(check, source) for check in checks)
        and not curr.conditions[STORM + source]
        and not any(lines.severity == "critical" for lines in history.alike.values())
    }
    held = [one for one in verdict.effects if one.key in quiet and not one.params.get("over")]
    kept = tuple(one for one in verdict.effects if one not in held)
    notes = (f"{one.key} is left to a check that counts these lines" for one in held)
    return replace(verdict, effects=kept).noting(*notes)
