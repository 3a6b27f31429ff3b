"""Notifies people about network trouble, and finds what an outage explains: such trouble causes no restart and no
second notice. Nothing else can be done about the network from here."""

from pulse_core.model.durations import duration_text
from pulse_core.model.names import DEGRADED, DNS_ONLY, DOWN, HTTP_ONLY, NETWORK, QUALITY, SLOW, WELL
from pulse_core.model.urls import host_of, is_address, is_here
from pulse_core.model.verdict import Verdict
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import Snapshot
from pulse_core.rules.measurements import described
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import notify_over, notify_unless_told

OUTAGE = NETWORK
"""The topic of an outage; QUALITY is that of degraded quality (some targets fail, or answers are slow)."""

TITLES = {
    DOWN: (OUTAGE, "the network is down"),
    DNS_ONLY: (OUTAGE, "names do not resolve, though the network works"),
    HTTP_ONLY: (OUTAGE, "names resolve, but no page can be fetched"),
    SLOW: (QUALITY, "the network is slow"),
    DEGRADED: (QUALITY, "a target on the network is in trouble"),
}
UNKNOWN = (QUALITY, "the network is not as it should be")
NAMES = {OUTAGE: "the network", QUALITY: "the quality of the network"}
"""What each topic is about, in words: of an outage that came out of degraded quality both are told to be over."""


async def network_watchdog(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Notify once what is wrong with the network, and when that is over."""
    verdict = await inner(prev, curr)
    condition = curr.conditions[NETWORK]
    if condition is None:
        over, gone = "every target answers", curr.conditions.unwatched.get(NETWORK, "")
        for topic, name in NAMES.items():
            verdict = verdict.plus(*notify_over(topic, name, over, curr, NETWORK, unwatched=gone))
        return verdict
    topic, title = TITLES.get(condition.state, UNKNOWN)
    lasts = f"{condition.state} for {duration_text(curr.now.since(condition.changed))}"
    words = described(NETWORK, condition, curr)
    verdict = verdict.plus(*notify_unless_told(topic, title, words, curr, NETWORK))
    if topic == QUALITY:
        verdict = verdict.plus(
            *notify_over(OUTAGE, NAMES[OUTAGE], f"it works again, but {title}", curr, NETWORK)
        )
    return verdict.noting(f"network: {lasts}: {words}")


def outage_reason(url: str, wrong: Condition, curr: Snapshot) -> str:
    """How the network explains what is wrong with this URL; empty if it does not.

    No outage explains a URL on this machine's loopback. If the network looks bad but nothing is proven yet, or
    was not probed since the URL failed, it may be the reason: wait for its next probe.
    """
    network = curr.settings.network
    if is_here(url) or not (network.dns or network.http):
        return ""
    if condition := curr.conditions[NETWORK]:
        words = f"the network is {condition.state}, {condition.age(curr.now)}"
        return words if explains_url(condition.state, url) else ""
    newest = curr.window(NETWORK).last
    age = curr.now.since(newest.moment) if newest else 0
    if newest is None or age > 2 * (network.interval + network.timeout):
        return ""  # the network is not watched
    if explains_url(newest.data.get("state", WELL), url):
        return "the network may be the reason: it looks bad, which another look will prove or not"
    return "the network may be the reason: it is looked at first" if age > curr.now.since(wrong.since) else ""


def explains_url(state: str, url: str) -> bool:
    """Whether a network in this state explains that this URL does not answer."""
    return state in {DOWN, HTTP_ONLY} or (state == DNS_ONLY and not is_address(host_of(url)))
