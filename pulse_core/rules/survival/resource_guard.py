"""Acts on shortages of memory and disk space: warns, takes measures in stages, and reports whether they helped.

Which measure is due, the mildest first, follows from the settings and from what was tried.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pulse_core.model.durations import duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import ARCHIVE_SESSIONS, CLEAN_PATHS, OF_MEMORY, STOP_PROCESS, SYSTEM_RESOURCE
from pulse_core.model.text import format_size
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import (
    DAMAGED,
    ENGINE_MISSING,
    FOR,
    GONE,
    UNWRITTEN,
    Condition,
    Measure,
)
from pulse_core.projections.state import Snapshot
from pulse_core.rules.measurements import described
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import (
    is_told,
    notify_over,
    notify_unless_told,
    survival_effect,
    topic_text,
)

TOPIC = "resource:"
BETTER = 0.02
"""The share by which usage must have fallen to count as better."""
TITLES = {
    "memory": "memory is short",
    "swap": "swap is nearly full",
    "pressure:memory": "everything waits for memory",
    "pressure:io": "everything waits for the disks",
    UNWRITTEN: "the log can't be written",
    GONE: "the log was deleted or replaced",
    DAMAGED: "the log is damaged",
    ENGINE_MISSING: "the engine's repository is gone or broken",
}
OF_PATHS = {
    "disk": "{} is nearly full",
    "inodes": "{} has hardly any inodes left",
    "unmeasured": "{} does not tell how full it is",
}
EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "pressure:memory": OF_MEMORY[:1],
    "swap": OF_MEMORY[:2],
    "pressure:io": OF_MEMORY[:2],
}
"""By condition, those that explain it, so that it sends no notice: a machine short of memory also waits for its disks."""

MINUTE = 60 * US_PER_SECOND
REST, LONGEST, NEVER = 10 * MINUTE, 360 * MINUTE, 1 << 62
"""How long nothing is tried again when nothing has helped: doubled each time, up to the longest."""

STOPS, BUDGET = 3, 10 * MINUTE
"""Stops within ten minutes, over all conditions and episodes; each has a slot that is free again after that."""

WORTH = 0.01
"""The least share of all memory that a process must hold to be stopped."""

FRESH = 3
"""For how many intervals of the watcher its list of consumers counts as fresh."""


class ShortageStep(NamedTuple):
    """The due effect (or None), microseconds until that may change (None: only after an event), and why.

    vain: since when all allowed measures are known to have failed; None while one may still help.
    """

    wish: Effect | None = None
    wait_us: int | None = None
    why: str = ""
    vain: Moment | None = None


async def resource_guard(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Warn, then clean, archive or stop what the settings allow, one after the other, until one helps."""
    verdict = await inner(prev, curr)
    for name, condition in curr.conditions.raised.items():
        if not title_of(name):
            continue
        if cause := next((one for one in EXPLAINS.get(name, ()) if curr.conditions[one]), None):
            verdict = verdict.noting(f"{name}: explained by {cause}")
            continue
        due = next_step(name, condition, curr)
        requests = (due.wish,) if due.wish else ()
        notices = _shortage_notices(name, condition, due, curr)
        verdict = verdict.plus(*requests, *notices).after_wait(due.wait_us).noting(f"{name}: {due.why}")
    return verdict.plus(*_over_notices(curr))


def title_of(name: str) -> str:
    """The title of this condition in a notice; empty if it is no resource condition."""
    kind, _, path = name.partition(":")
    return TITLES.get(name) or (OF_PATHS[kind].format(path) if kind in OF_PATHS and path else "")


def _shortage_notices(
    name: str, condition: Condition, due: ShortageStep, curr: Snapshot
) -> tuple[Effect, ...]:
    """The warning, and later, once, the notice that nothing has helped."""
    title = title_of(name)
    if due.vain is None:
        text = f"{described(name, condition, curr)}. {describe_plan(name, curr)}"
        return notify_unless_told(TOPIC + name, title, text, curr, SYSTEM_RESOURCE)
    tried = tried_against(name, curr)
    what = f"Tried: {describe_measures(tried)}" if tried else f"Nothing could be tried: {due.why}"
    vain, trend = describe_trend(name, condition, curr)
    text = f"{what}. It was {condition.age(curr.now)}{trend}."
    title = f"{title}, and {vain}"
    return notify_unless_told(TOPIC + name, title, text, curr, SYSTEM_RESOURCE, news=due.vain)


def describe_plan(name: str, curr: Snapshot) -> str:
    """Describe the planned measures, or what a person could allow."""
    if name == UNWRITTEN:
        return "Pulse acts from memory, and writes it down when there is room: make some."
    if name == GONE:
        return "Pulse acts from memory; what it does is recorded when the daemon is stopped."
    if name == DAMAGED:
        return "Pulse goes on; put the log back from a backup: upulse restore."
    if name == ENGINE_MISSING:
        return "Survival goes on; put the repository back from a backup, and start the daemon anew."
    resources = curr.settings.resources
    planned = allowed_actions(name, curr)
    steps = []
    if CLEAN_PATHS in planned:
        age, paths = duration_text(resources.clean_age), ", ".join(resources.clean)
        steps.append(f"deletes what nobody touched for {age} in {paths}")
    if ARCHIVE_SESSIONS in planned and resources.sessions:
        age, root = duration_text(resources.sessions.keep), resources.sessions.root
        steps.append(f"archives what nobody touched for {age} in {root}")
    if steps:
        return f"Pulse {', and if that does not help '.join(steps)}."
    if planned:
        return f"If it lasts for {duration_text(resources.patience)}, Pulse stops the worst of {', '.join(resources.stop)}."
    if name in OF_MEMORY:
        return "Pulse does nothing about it: [resources] allows to stop nobody."
    if name.startswith(("disk:", "inodes:")):
        return "Pulse does nothing about it: [resources] has neither clean nor sessions."
    return "Pulse does nothing about it."


def describe_measures(tried: Iterable[Measure]) -> str:
    """Describe what was tried and the outcomes."""
    return ", ".join(f"{one.action} ({describe_measure(one)})" for one in tried)


def describe_measure(measure: Measure) -> str:
    """Describe the outcome of a measure."""
    if measure.settled is None:
        return "under way"
    return measure.told or ("done" if measure.worked else "not done")


def describe_trend(name: str, condition: Condition, curr: Snapshot) -> tuple[str, str]:
    """How little the measures have helped, and the trend since it was raised, where it can be measured."""
    now, was = measured_share(name, curr), condition.value
    if now is None or was is None:
        return "nothing helped", ""
    vain = "what was tried did not help enough" if was - now >= BETTER else "nothing helped"
    return vain, f"; it was {was:.1%}, and is {now:.1%} now"


def measured_share(name: str, curr: Snapshot) -> float | None:
    """The share that the newest sample has for the condition's resource; None if it has none."""
    if (sample := curr.window(SYSTEM_RESOURCE).last) is None:
        return None
    data = sample.data
    kind, _, what = name.partition(":")
    value = data.get(kind)
    if kind == "pressure":
        value = data.get("psi", {}).get(what, {}).get("full")
    if what and kind in OF_PATHS:
        value = data.get("disks", {}).get(what, {}).get("used" if kind == "disk" else kind)
    return value


def _over_notices(curr: Snapshot) -> Iterable[Effect]:
    """The notice that it is over, for each resource with an open notice."""
    raised = {topic_text(TOPIC + name) for name in curr.conditions.raised}
    for topic in curr.notices.of:
        if topic.startswith(TOPIC) and topic not in raised and is_told(topic, curr):
            name = topic.removeprefix(TOPIC)
            measures = curr.conditions.last.get(name, ())
            done = f"; tried before: {describe_measures(measures)}" if measures else ""
            now = measured_share(name, curr)
            text = f"It is over{done}{f'; it is {now:.1%} now' if now is not None else ''}."
            gone = curr.conditions.unwatched.get(name, "")
            yield from notify_over(topic, title_of(name) or name, text, curr, SYSTEM_RESOURCE, unwatched=gone)


# What to do against a shortage


def allowed_actions(name: str, curr: Snapshot) -> tuple[str, ...]:
    """The actions that may be taken against a condition, in order: one round."""
    resources = curr.settings.resources
    if name in OF_MEMORY:
        return (STOP_PROCESS,) * STOPS if resources.stop else ()
    if name.startswith(("disk:", "inodes:")):
        return (CLEAN_PATHS,) * bool(resources.clean) + (ARCHIVE_SESSIONS,) * bool(resources.sessions)
    return ()


def next_step(name: str, condition: Condition, curr: Snapshot) -> ShortageStep:
    """The next step against this raised condition."""
    actions = allowed_actions(name, curr)
    if not actions:
        return ShortageStep(why="the settings allow no action against it")
    if not curr.has_looked(SYSTEM_RESOURCE):
        interval = curr.settings.watch.system_interval
        return ShortageStep(None, interval, "held back: nobody has looked since the daemon began")
    tried, patience = tried_against(name, curr), curr.settings.resources.patience
    action = actions[len(tried) % len(actions)]
    keys = effect_keys(action, name)
    if tried and tried[-1].settled is None:
        return ShortageStep(why=f"{tried[-1].action} is under way")
    if any(curr.effects.by_key(key) for key in keys):
        return ShortageStep(why=f"{action} is under way")
    vain = _round_ended(tried, len(actions), patience, curr.now)
    if (wait := _pause(tried, len(actions), patience) - _idle(tried, keys, condition, curr)) > 0:
        left = duration_text(wait)  # after a whole round it is a rest, and nothing is expected of it any more
        is_given = len(tried) % len(actions) > 0
        why = f"{tried[-1].action} is given {left} to help" if is_given else f"{action} is due in {left}"
        return ShortageStep(None, wait, why, vain)
    if action == STOP_PROCESS:
        return _stop_step(name, condition, tried, vain, curr)
    # Cleaning, or archiving, on the file system that is short of room.
    resources = curr.settings.resources
    params: dict[str, Json] = {"near": name.partition(":")[2], FOR: name}
    if action == CLEAN_PATHS:
        params |= {"roots": list(resources.clean), "older_than_us": resources.clean_age}
    effect = survival_effect(action, keys[0], params, condition.evidence, curr.samples(SYSTEM_RESOURCE))
    return ShortageStep(effect, why=f"{action} is due", vain=vain)


def tried_against(name: str, curr: Snapshot) -> list[Measure]:
    """What was tried against this condition and those that the same measures answer, oldest first."""
    kind, _, path = name.partition(":")
    names: Sequence[str] = OF_MEMORY if name in OF_MEMORY else ()
    if kind in ("disk", "inodes"):
        names = (f"disk:{path}", f"inodes:{path}")
    raised = (curr.conditions[one] for one in names)
    measures = [measure for one in raised if one for measure in one.measures]
    return sorted(measures, key=lambda measure: curr.now.since(measure.wished), reverse=True)


def effect_keys(action: str, name: str) -> tuple[str, ...]:
    """The keys that this action may have: each excludes a second effect of the same kind."""
    if action == STOP_PROCESS:
        return tuple(f"{STOP_PROCESS}:worst:{slot}" for slot in range(1, STOPS + 1))
    return (topic_text(f"{CLEAN_PATHS}:{name.partition(':')[2]}") if action == CLEAN_PATHS else action,)


def _pause(tried: Sequence[Measure], length: int, patience: int) -> int:
    """How long to wait after the last measure: for it to help, or longer once a whole round has not."""
    if not tried or len(tried) % length:
        return patience if not tried or tried[-1].worked or tried[-1].action == STOP_PROCESS else 0
    return max(patience, min(REST << min(len(tried) // length - 1, 20), LONGEST))


def _idle(tried: Sequence[Measure], keys: Sequence[str], condition: Condition, curr: Snapshot) -> int:
    """Microseconds since the last measure; a stop also leaves a person this time before the first one.

    The keys' own times outlast an episode, and the fifty measures that are kept of one.
    """
    moments = [tried[-1].settled] if tried else [condition.since] if len(keys) > 1 else []
    moments += [curr.effects.settled_at.get(key) for key in keys]
    return min((curr.now.since(moment) for moment in moments if moment), default=NEVER)


def _round_ended(tried: Sequence[Measure], length: int, patience: int, now: Moment) -> Moment | None:
    """When the first round was over and its last measure had had its time."""
    if len(tried) < length or (last := tried[length - 1]).settled is None:
        return None
    over = last.settled.plus(patience if last.worked else 0)
    return over if now.since(last.settled) >= patience or not last.worked else None


def _stop_step(
    name: str, condition: Condition, tried: Sequence[Measure], vain: Moment | None, curr: Snapshot
) -> ShortageStep:
    settled = {key: curr.effects.settled_at.get(key) for key in effect_keys(STOP_PROCESS, name)}
    waits = {key: BUDGET - curr.now.since(then) if then else 0 for key, then in settled.items()}
    slot = min(waits, key=lambda key: waits[key])
    if waits[slot] > 0:
        spent = f"budget: {STOPS} stops in {duration_text(BUDGET)} are spent"
        why = f"{spent}; the next one in {duration_text(waits[slot])}"
        return ShortageStep(None, waits[slot], why, vain)
    since = min((then for then in (*settled.values(), condition.since) if then), key=curr.now.since)
    look = curr.settings.watch.system_interval
    sample = curr.window(SYSTEM_RESOURCE).last
    if sample is None or curr.now.since(sample.moment) > min(FRESH * look, curr.now.since(since)):
        return ShortageStep(None, look, "waits for a fresh look at who uses memory", vain)
    worst = consumers(name, sample.data)
    if not worst:
        nobody = condition.since.plus(curr.settings.resources.patience)
        return ShortageStep(None, look, "nobody who may be stopped holds much", vain or nobody)
    failed = sum(1 for one in tried if not one.worked)
    one = worst[failed % len(worst)]
    params = {"consumer": {field: one[field] for field in ("pid", "started", "pattern")}, FOR: name}
    holds = f"process {one['pid']} ({one['name']}) holds {format_size(one['rss'])} of memory"
    reason = f"{name}: {holds} and {format_size(one['swap'])} of swap, the most of what may be stopped"
    effect = survival_effect(STOP_PROCESS, slot, params, reason, curr.samples(SYSTEM_RESOURCE))
    effect = effect.model_copy(update={"not_after": curr.now.at + curr.settings.resources.patience})
    return ShortageStep(effect, why=f"{STOP_PROCESS} is due", vain=vain)


def consumers(name: str, data: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The processes in the sample that may be stopped and hold enough memory for that to help, the largest first."""
    of = "swap" if name == "swap" else "rss"
    least = WORTH * data["memory_total"]
    held = [one for one in data.get("consumers", ()) if one["rss"] + one["swap"] >= least]
    return sorted(held, key=lambda one: (-one[of], one["pid"]))
