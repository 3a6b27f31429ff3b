"""The capability of the door for agents: it has no events of its own."""

from pulse_core.capability import Capability

CAPABILITY = Capability("mcp")
