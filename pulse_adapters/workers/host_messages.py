"""Messages with the hosts of authors' code, which hold values of the core."""

import json
from typing import Any

from pulse_adapters.workers.framing import frame


def encode(message: Any) -> bytes:
    """A message, ready to be sent; half characters become "?"."""
    from pydantic_core import to_json  # once there is something to say; a worker is begun before

    try:
        body = to_json(message, fallback=str)
    except ValueError:
        body = json.dumps(message, default=_plain, ensure_ascii=False).encode("utf-8", "replace")
    return frame(body)


def _plain(thing: Any) -> Any:
    return thing.model_dump(mode="json") if hasattr(thing, "model_dump") else str(thing)
