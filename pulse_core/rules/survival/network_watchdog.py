"""Notifies people about network trouble; nothing else can be done about it from here."""

from pulse_core.model.condition_names import DEGRADED, DNS_ONLY, DOWN, HTTP_ONLY, NETWORK, SLOW
from pulse_core.model.durations import rough_duration
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import notify_over, notify_unless_told

OUTAGE, QUALITY = "network", "network:quality"
"""Topics: an outage; or degraded quality (some targets fail, or answers are slow)."""

TITLES = {
    DOWN: (OUTAGE, "the network is down"),
    DNS_ONLY: (OUTAGE, "names do not resolve, though the network works"),
    HTTP_ONLY: (OUTAGE, "names resolve, but no page can be fetched"),
    SLOW: (QUALITY, "the network is slow"),
    DEGRADED: (QUALITY, "a target on the network is in trouble"),
}
UNKNOWN = (QUALITY, "the network is not as it should be")


async def network_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Notify once what is wrong with the network, and when that is over."""
    verdict = await inner(prev, curr)
    condition = curr.conditions[NETWORK]
    if condition is None:
        over = "every target answers, or is not watched any more"
        ends = (notify_over(topic, "the network", over, curr, NETWORK) for topic in (OUTAGE, QUALITY))
        return verdict.plus(*(effect for end in ends for effect in end))
    topic, title = TITLES.get(condition.state, UNKNOWN)
    lasts = f"{condition.state} for {rough_duration(curr.now.since(condition.changed))}"
    verdict = verdict.plus(*notify_unless_told(topic, title, condition.evidence, curr, NETWORK))
    if topic == QUALITY:
        verdict = verdict.plus(
            *notify_over(OUTAGE, "the network", f"it works again, but {title}", curr, NETWORK)
        )
    return verdict.noting(f"network: {lasts}: {condition.evidence}")
