"""What clients over MCP do beside their tasks, and how often each has read. Subject of each event: its name."""

from collections.abc import Iterable, Iterator

from pydantic import Field

from pulse_core.model.event import Event
from pulse_core.model.payload import Payload, Role, Wake, decode_plain
from pulse_core.projections.state import Snapshot, StateProjection


class ClientReads(Payload, kind="client-reads", by=Role.AGENT, wakes=Wake.NEVER):
    """A client has read so often since this was said last."""

    reads: int = Field(ge=1, lt=1 << 31)


class RuleProposed(Payload, kind="rule-proposed", by=Role.AGENT, wakes=Wake.NEVER):
    """A client has written a rule into staging, or tried to."""

    rule: str = Field(max_length=60)
    commit: str = Field(
        "", max_length=64, description="what main would be with it; none: it did not get that far"
    )
    gates: tuple[str, ...] = Field((), max_length=10, description="what each gate said to it")


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
