"""How often clients have read."""

from collections.abc import Iterable, Iterator

from pulse_core.mcp.events import ClientReads
from pulse_core.model.event import Event
from pulse_core.model.payload import decode_plain
from pulse_core.projections.state import Snapshot, StateProjection

MOST = 100
"""Clients that are remembered: those that have read last."""

Reads = dict[str, int]
"""By the name of the client."""


def after(state: Reads, events: Iterable[Event]) -> Reads:
    """The reads after more events."""
    reads = dict(state)
    for event in events:
        if event.kind == ClientReads.kind and (data := decode_plain(event.data)):
            reads[event.subject] = reads.pop(event.subject, 0) + int(data["reads"])
    return dict(list(reads.items())[-MOST:])


READS = StateProjection("client-reads", 1, Reads, frozenset({ClientReads.kind}), after)


def lines(curr: Snapshot) -> Iterator[str]:
    """How often each client has read."""
    if reads := curr.of(READS):
        yield "mcp       reads: " + ", ".join(f"{name} {count:,}" for name, count in reads.items())
