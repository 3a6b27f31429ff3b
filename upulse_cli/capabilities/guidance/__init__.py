"""`upulse guidance`."""

from upulse_cli.capabilities.guidance.commands import add_to as add_to
