"""What a home's files say of its silences."""

from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_core.silences.listing import listing, unknown_pattern
from upulse_cli.facts import facts_of
from upulse_cli.standing import decided


def listed(home: Home) -> Mapping[str, Any]:
    """The silences that hold, and those that come again."""
    state = facts_of(home)
    settings, _ = decided(home, state)
    return listing(state, settings, SystemClock().now())


def strange(home: Home, pattern: str) -> str:
    """What is to be said of a pattern that fits nothing that is known; nothing if it fits something."""
    state = facts_of(home)
    settings, _ = decided(home, state)
    return unknown_pattern(pattern, state, settings)
