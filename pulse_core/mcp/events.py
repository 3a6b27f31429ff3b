"""What clients over MCP do beside their tasks. Subject of each event: the client's name."""

from pydantic import Field

from pulse_core.model.payload import Payload, Role, Wake


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
