"""`upulse silence`."""

from upulse_cli.capabilities.silences.commands import add_to as add_to
