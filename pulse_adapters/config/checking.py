"""Parsed TOML becomes settings here, strictly."""

import json
from typing import Any

from pulse_core.settings import Settings
from pulse_core.settings.durations import AS_WRITTEN


def validate(data: dict[str, Any]) -> Settings:
    """Check as JSON, where a list may become a tuple but no text a number; raises pydantic's ValidationError."""
    text = json.dumps(data, default=lambda _: [None])  # a date or time, which no setting takes
    return Settings.model_validate_json(text, strict=True, context=dict(AS_WRITTEN))
