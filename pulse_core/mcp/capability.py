"""The capability of the door for agents."""

from pulse_core.capability import Capability
from pulse_core.mcp.events import ClientReads, RuleProposed
from pulse_core.mcp.projection import READS, lines
from pulse_core.mcp.settings import SETTINGS

CAPABILITY = Capability(
    "mcp", kinds=(ClientReads, RuleProposed), projections=(READS,), settings=(SETTINGS,), status=lines
)
