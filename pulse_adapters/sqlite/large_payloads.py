"""Large payloads on the daemon's side: one that is lost stops whoever folds the log, unless that was accepted."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from pulse_adapters.sqlite.payloads import LostPayload, object_path, referenced_object
from pulse_core.model.errors import Damaged
from pulse_core.model.stored_data import REDACTED
from pulse_core.ports import Objects

LOG = logging.getLogger("pulse.log")


class LargePayloads:
    """Finds the payloads that rows of the log at `path` refer to.

    accepted: tells the last row whose payload may be lost, since a person said so later; asked at most once.
    """

    def __init__(self, path: Path, objects: Objects, accepted: Callable[[], Awaitable[int]]) -> None:
        self._path, self._objects, self._accepted = path, objects, accepted
        self._upto: int | None = None

    async def of(self, seq: int, kind: str, data: str) -> str:
        """The payload of a row. If it is lost: as of a redacted row, where that was accepted; else Damaged.

        A fold that passed it over unasked would go on with less than was recorded.
        """
        try:
            return await self._found(data)
        except LostPayload as lost:
            if self._upto is None:
                self._upto = await self._accepted()
            if seq > self._upto:
                raise Damaged(f"{self._path}: {lost_payload_message(seq, kind, str(lost))}") from lost
            LOG.warning("the payload of row %d (%s) is lost, as was accepted: %s", seq, kind, lost)
            return REDACTED

    async def _found(self, data: str) -> str:
        try:
            name = referenced_object(data)
            blob = await self._objects.get(name)
        except (ValueError, LookupError, TypeError):
            raise LostPayload("its reference to an object can't be read") from None
        except Damaged as error:
            raise LostPayload(str(error).removesuffix("; restore it from a backup")) from error
        if blob is None:
            raise LostPayload(f"the object {object_path(Path('objects'), name)} is missing")
        return blob.decode()


def lost_payload_message(seq: int, kind: str, why: str) -> str:
    """What is said of a row whose payload is lost, and what can be done. why: which object, and its fate."""
    return (
        f"the payload of row {seq} ({kind}) is lost: {why}; restore it from a backup, or go on without it:"
        " `upulse daemon start --accept-damage` keeps a copy of the log in damaged/ first"
    )
