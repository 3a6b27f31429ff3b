"""Parsed TOML becomes settings here, strictly."""

import grp
import json
from typing import Any

from pulse_core.model.errors import hint
from pulse_core.settings import Settings
from pulse_core.settings.durations import AS_WRITTEN
from pulse_core.settings.settings import GROUP_CHECK


def validate(data: dict[str, Any], *, demand_groups: bool = True) -> Settings:
    """Check as JSON, where a list may become a tuple but no text a number; raises pydantic's ValidationError.

    demand_groups: whether the groups that are named must be there on this machine.
    """
    text = json.dumps(data, default=lambda _: [None])  # a date or time, which no setting takes
    context = {**AS_WRITTEN, GROUP_CHECK: demand_group if demand_groups else None}
    return Settings.model_validate_json(text, strict=True, context=context)


def demand_group(name: str) -> None:
    """Raise ValueError for a group that this machine does not have, with the nearest one that it has."""
    try:
        grp.getgrnam(name)
    except KeyError:
        known = [group.gr_name for group in grp.getgrall()]
        raise ValueError(f"there is no group {name!r} on this machine{hint(name, known)}") from None
