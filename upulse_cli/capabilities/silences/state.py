"""What a home's files say of its silences."""

from collections.abc import Mapping
from typing import Any

from pulse_core.app.state import current_state, settings_for
from pulse_core.home import HomeLayout
from pulse_core.silences.listing import list_silences, unknown_pattern
from upulse_cli.wiring.home import home_context


def listed(home: HomeLayout) -> Mapping[str, Any]:
    """The silences that hold, and those that come again."""
    context = home_context(home)
    state = current_state(context)
    return list_silences(state, settings_for(context, state).settings, context.clock.now())


def strange(home: HomeLayout, pattern: str) -> str:
    """What is to be said of a pattern that fits nothing that is known; nothing if it fits something."""
    context = home_context(home)
    state = current_state(context)
    return unknown_pattern(pattern, state, settings_for(context, state).settings)
