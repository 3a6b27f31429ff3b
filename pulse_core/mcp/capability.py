"""The capability of the door for agents."""

from pulse_core.capability import Capability
from pulse_core.mcp.client_scope import SETTINGS
from pulse_core.mcp.events import READS, ClientReads, RuleProposed, lines

CAPABILITY = Capability(
    "mcp", kinds=(ClientReads, RuleProposed), projections=(READS,), settings=(SETTINGS,), status=lines
)
