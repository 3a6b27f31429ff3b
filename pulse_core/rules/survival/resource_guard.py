"""Acts on shortages of memory and disk space: warns, takes measures in stages, and reports whether they helped."""

from collections.abc import Iterable, Mapping

from pulse_core.model.actions import ARCHIVE_SESSIONS, CLEAN_PATHS
from pulse_core.model.condition_names import OF_MEMORY, SYSTEM_RESOURCE
from pulse_core.model.durations import rough_duration
from pulse_core.model.kinds import Effect
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Condition, Measure, Snapshot
from pulse_core.projections.conditions import UNWRITTEN
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told, topic_text
from pulse_core.rules.survival.shortage import (
    ShortageStep,
    allowed_actions,
    next_step,
    tried_against,
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
        text = f"{condition.evidence}. {describe_plan(name, curr)}"
        return notify_unless_told(TOPIC + name, title, text, curr, SYSTEM_RESOURCE)
    tried = tried_against(name, curr)
    what = f"Tried: {describe_measures(tried)}" if tried else f"Nothing could be tried: {due.why}"
    vain, trend = describe_trend(name, condition, curr)
    text = f"{what}. It lasts for {rough_duration(curr.now.since(condition.since))}{trend}."
    title = f"{title}, and {vain}"
    return notify_unless_told(TOPIC + name, title, text, curr, SYSTEM_RESOURCE, news=due.vain)


def describe_plan(name: str, curr: Snapshot) -> str:
    """Describe the planned measures, or what a person could allow."""
    if name == UNWRITTEN:
        return "Pulse acts from memory, and writes it down when there is room: make some."
    resources = curr.settings.resources
    planned = allowed_actions(name, curr)
    steps = []
    if CLEAN_PATHS in planned:
        age, paths = rough_duration(resources.clean_age), ", ".join(resources.clean)
        steps.append(f"deletes what nobody touched for {age} in {paths}")
    if ARCHIVE_SESSIONS in planned and resources.sessions:
        age, root = rough_duration(resources.sessions.keep), resources.sessions.root
        steps.append(f"archives what nobody touched for {age} in {root}")
    if steps:
        return f"Pulse {', and if that does not help '.join(steps)}."
    if planned:
        return f"If it lasts for {rough_duration(resources.patience)}, Pulse stops the worst of {', '.join(resources.stop)}."
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
            done = f" after {describe_measures(measures)}" if measures else ""
            now = measured_share(name, curr)
            text = f"It is over{done}{f'; it is {now:.1%} now' if now is not None else ''}."
            yield from notify_over(topic, title_of(name) or name, text, curr, SYSTEM_RESOURCE)
