"""Messages on the pipes: four bytes of length, then JSON."""

import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

LARGEST_REPLY = 1024 * 1024
"""Bytes of a message that a child may send."""
LARGEST_REQUEST = 256 * 1024 * 1024
_HEAD = 4

Message = dict[str, Any]


class Garbled(ValueError):
    """Bytes that are no message."""


def packed(message: Any) -> bytes:
    """A message, ready to be sent; half characters, as from odd file names, become "?"."""
    try:
        body = to_json(message, fallback=str)
    except ValueError:
        body = json.dumps(message, default=_plain, ensure_ascii=False).encode("utf-8", "replace")
    return len(body).to_bytes(_HEAD, "big") + body


def _plain(thing: Any) -> Any:
    return thing.model_dump(mode="json") if isinstance(thing, BaseModel) else str(thing)


class Frames:
    """Cuts what is read into messages. largest: how many bytes one may have; finite: no NaN is a number in them."""

    def __init__(self, largest: int, finite: bool = False) -> None:
        self._largest, self._finite = largest, finite
        self._read = bytearray()

    def take(self, raw: bytes) -> list[Message]:
        """The messages that are whole now. Raises Garbled."""
        self._read += raw
        found = []
        while len(self._read) >= _HEAD:
            size = int.from_bytes(self._read[:_HEAD], "big")
            if size > self._largest:
                raise Garbled(f"a message of {size:,} bytes; at most {self._largest:,} are taken")
            if len(self._read) < _HEAD + size:
                break
            found.append(self._message(bytes(self._read[_HEAD : _HEAD + size])))
            del self._read[: _HEAD + size]
        return found

    def _message(self, body: bytes) -> Message:
        try:
            message = from_json(body, allow_inf_nan=not self._finite)
        except ValueError as error:
            raise Garbled(f"what is no JSON: {error}") from error
        if not isinstance(message, dict):
            raise Garbled("JSON that is no object")
        return message
