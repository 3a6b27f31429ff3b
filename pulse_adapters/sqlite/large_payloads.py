"""Large payloads on the daemon's side: one that is lost stops whoever folds the log, unless that was accepted."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from pulse_adapters.sqlite.payloads import LostPayload, payload_in
from pulse_core.model.errors import Damaged
from pulse_core.model.stored_data import REDACTED

LOG = logging.getLogger("pulse.log")


class LargePayloads:
    """Finds the payloads that rows of the log at `path` refer to, in the home's objects beside it.

    accepted: tells the last row whose payload may be lost, since a person said so later; asked at most once.
    """

    def __init__(self, path: Path, accepted: Callable[[], Awaitable[int]]) -> None:
        self._path, self._accepted = path, accepted
        self._upto: int | None = None

    async def of(self, seq: int, kind: str, data: str) -> str:
        """The payload of a row. If it is lost: as of a redacted row, where that was accepted; else Damaged.

        A fold that passed it over unasked would go on with less than was recorded.
        """
        try:
            return await asyncio.to_thread(payload_in, self._path.parent / "objects", data)
        except LostPayload as lost:
            if self._upto is None:
                self._upto = await self._accepted()
            if seq > self._upto:
                raise Damaged(
                    f"{self._path}: the payload of row {seq} ({kind}) is lost: {lost}; restore it from a backup,"
                    " or go on without it: `upulse daemon start --accept-damage` keeps a copy of the log in damaged/ first"
                ) from lost
            LOG.warning("the payload of row %d (%s) is lost, as was accepted: %s", seq, kind, lost)
            return REDACTED
