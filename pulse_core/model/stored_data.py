"""The data of a stored row: JSON text, or a marker if it was redacted, lost or altered."""

import json

from pulse_core.model.json_types import Json

REDACTED = "null"
"""The marker of redacted data."""

_DAMAGED = "$damaged"


def damage_marker(words: str) -> str:
    """The marker that replaces a lost payload."""
    return json.dumps({_DAMAGED: words})


def is_damaged(data: str) -> bool:
    """Whether this text is the marker of a lost payload."""
    return data.startswith(f'{{"{_DAMAGED}":')


def damage_in(data: str) -> str:
    """The message in the marker of a lost payload."""
    return str(json.loads(data)[_DAMAGED])


def read_data(data: str) -> Json:
    """Decode the data; data altered on disk decodes to a message, so that the other events stay readable."""
    try:
        decoded: Json = json.loads(data)
        return decoded
    except ValueError:
        return {_DAMAGED: "what it said can't be read, it was altered on the disk; see upulse verify"}
