"""Messages between the daemon and its workers, as they are on the pipes: four bytes of length, then a JSON object."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pulse_core.model.errors import PulseError

LARGEST_REPLY = 1024 * 1024
"""Bytes of a message that a worker may send."""
LARGEST_FOLD = 192 * 1024
"""Bytes of the answer to a tick, which the daemon's loop decodes again and again."""
MOST_COMMAS, COMMAS_OF_FOLD = 20_000, 10_000
"""In what the hosts of authors' code say, and in the answer to a tick: the more values, the longer takes the same size."""
LARGEST_REQUEST = 256 * 1024 * 1024
"""Bytes of a message that the daemon may send."""
_HEAD = 4

Message = dict[str, Any]


class WorkerFault(PulseError):
    """A worker ended, hung, or said what it must not; the words are about the worker, as "said …", "ended …"."""


def encode(message: Mapping[str, Any]) -> bytes:
    """A message, ready to be sent; half characters, as from odd file names, become "?"."""
    return frame(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def frame(body: bytes) -> bytes:
    """A body with its length before it."""
    return len(body).to_bytes(_HEAD, "big") + body


class Frames:
    """Cuts what is read into bodies of messages. largest: how many bytes one may have."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._read = bytearray()

    @property
    def has_part(self) -> bool:
        """Whether a body has begun, and is not whole."""
        return bool(self._read)

    def take(self, raw: bytes) -> Iterator[bytes]:
        """The bodies that are whole now, one after the other. Raises WorkerFault."""
        self._read += raw
        while len(self._read) >= _HEAD:
            size = int.from_bytes(self._read[:_HEAD], "big")
            if size > self._largest:
                raise WorkerFault(f"a message of {size:,} bytes; at most {self._largest:,} are taken")
            if len(self._read) < _HEAD + size:
                break
            body = bytes(self._read[_HEAD : _HEAD + size])
            del self._read[: _HEAD + size]
            yield body
