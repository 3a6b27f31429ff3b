"""Evaluates one round of network probes. Pure: the same answers and rounds give the same conclusion."""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.model.names import DEGRADED, DNS_ONLY, DOWN, HTTP_ONLY, NETWORK, SLOW, WELL
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from pulse_core.projections.conditions import Condition
from pulse_core.rules.measurements import network_words
from pulse_core.settings.network import NetworkSettings

HOST_REACHED = frozenset({Trouble.TLS_EXPIRED, Trouble.TLS_UNTRUSTED, Trouble.STATUS})
"""Troubles of a page that show that the network reaches it."""

DNS_ANSWERED = frozenset({Trouble.NXDOMAIN, Trouble.NO_ADDRESS})
"""Troubles of a name that show that a DNS server answers."""

LOCAL = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
"""Addresses of private networks and of this machine."""

OWN_NAMES = frozenset(
    {
        "localhost", "localdomain", "local", "lan", "home", "corp", "intranet", "private", "internal", "test",
        "example", "invalid", "arpa",
    }
)  # fmt: skip
"""Top-level labels that public DNS does not have: such names may resolve to private addresses."""


class TargetAnswer(NamedTuple):
    """One target and its answer."""

    question: ProbeRequest
    answer: ProbeResult


def check_answer(question: ProbeRequest, answer: ProbeResult, was_public: bool) -> ProbeResult:
    """The answer, marked as trouble if it is implausible, or a page with an error status."""
    if answer.trouble is None and (words := implausibility(question.target, answer.addresses, was_public)):
        return answer._replace(trouble=Trouble.LIE, detail=words)
    if answer.trouble is None and answer.status is not None and answer.status >= 500:
        return answer._replace(trouble=Trouble.STATUS, detail=f"it answered {answer.status}")
    return answer


def state_of(seen: Sequence[TargetAnswer], slow_us: int) -> str | None:
    """The state of the network in one round; None if no target of a kind could be probed."""
    asked = [one for one in seen if one.answer.trouble is not Trouble.UNASKED]
    if {one.question.about for one in asked} != {one.question.about for one in seen}:
        return None
    kinds = [[one.answer for one in asked if one.question.about == about] for about in ("dns", "http")]
    names, pages = kinds
    no_names = bool(names) and all(answer.trouble for answer in names)
    no_pages = bool(pages) and all(answer.trouble not in {None, *HOST_REACHED} for answer in pages)
    if (no_names or no_pages) and (no_names or not names) and (no_pages or not pages):
        dns_answers = not pages and any(answer.trouble in DNS_ANSWERED for answer in names)
        return DNS_ONLY if dns_answers else DOWN
    if no_names or no_pages:
        return DNS_ONLY if no_names else HTTP_ONLY
    took = ([answer.took_ms * 1000 for answer in kind if answer.trouble is None] for kind in kinds)
    if any(latencies and min(latencies) >= slow_us for latencies in took):
        return SLOW
    return DEGRADED if any(one.answer.trouble for one in asked) else WELL


def conclude(
    seen: Sequence[TargetAnswer],
    rounds: Sequence[str],
    stands: Condition | None,
    settings: NetworkSettings,
    failing: Moment | None = None,
) -> tuple[Draft, ...]:
    """The drafts that follow from the newest round: a change, once enough rounds in a row agree on it.

    rounds: the states of it and those before it, oldest first; stands: the raised condition; failing: when the first of
    several bad rounds in a row was.
    """
    before, needed = stands.state if stands else WELL, settings.evidence
    agreed = agreed_state(rounds, needed, before)
    if agreed is None or agreed == before:
        return ()
    times = "1 round" if needed == 1 else f"{needed} rounds in a row"
    if agreed == WELL:
        return (Draft(ConditionCleared(evidence=f"every target answers, {times}"), subject=NETWORK),)
    words = network_words(agreed, settings, _answers(seen), times)
    since = failing.at if failing and not stands else 0
    return (Draft(ConditionRaised(evidence=words, state=agreed, failing=since), subject=NETWORK),)


def agreed_state(rounds: Sequence[str], needed: int, stands: str) -> str | None:
    """The state on which the last rounds agree; None if they don't, or are too few.

    While no condition is raised and their states differ but all are bad, they agree on `degraded`.
    """
    last = rounds[-needed:]
    if len(last) < needed:
        return None
    if len(set(last)) == 1:
        return last[0]
    return DEGRADED if stands == WELL and all(last) else None


def _answers(seen: Sequence[TargetAnswer]) -> dict[str, Mapping[str, Json]]:
    """The answers as a sample has them."""
    return {
        question.target: {"ok": it.trouble is None, "latency_ms": it.took_ms, "detail": it.detail}
        for question, it in seen
    }


def is_local(address: str) -> bool:
    """Whether it is a private address, or this machine's own."""
    return any(ip_address(address) in net for net in LOCAL)


def implausibility(name: str, addresses: Iterable[str], was_public: bool) -> str:
    """Why this answer cannot be true; empty if it may be.

    was_public: it had a public address before. Only then is a private one implausible: many names have private
    addresses for good reasons.
    """
    _, dot, last = name.rstrip(".").rpartition(".")
    is_public = bool(dot) and last.lower() not in OWN_NAMES
    for address in addresses:
        it = f"the answer is {address}"
        if ip_address(address).is_unspecified:
            return f"{it}, which is no host's address"
        if ip_address(address).is_loopback and is_public:
            return f"{it}, which is this machine itself"
        if was_public and is_local(address):
            return f"{it}, a private address, where a public one was before"
    return ""
