"""The data of a stored row: JSON text, or what stands there when it was redacted, lost or altered."""

import json

from pulse_core.model.json_types import Json

REDACTED = "null"
"""What stands for data that was redacted."""

_DAMAGED = "$damaged"


def damage_marker(words: str) -> str:
    """What a reader says instead of a payload that is lost."""
    return json.dumps({_DAMAGED: words})


def is_damaged(data: str) -> bool:
    """Whether this text stands for a payload that is lost."""
    return data.startswith(f'{{"{_DAMAGED}":')


def damage_in(data: str) -> str:
    """The words in the text that stands for a lost payload."""
    return str(json.loads(data)[_DAMAGED])


def read_data(data: str) -> Json:
    """The data decoded; what was altered on the disk says so in its place, and the other events are told."""
    try:
        decoded: Json = json.loads(data)
        return decoded
    except ValueError:
        return {_DAMAGED: "what it said can't be read, it was altered on the disk; see upulse verify"}
