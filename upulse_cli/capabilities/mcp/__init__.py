"""`upulse mcp`."""

from upulse_cli.capabilities.mcp.commands import add_to as add_to
