"""Keeps a checkpoint of the incidents, folded beside the loops: nobody is to wait at a prompt until a week is read.

No rule reads them, so neither a tick nor a start folds them. After a start without a checkpoint the whole log is folded, a
few rows at a time, with rests in between.
"""

import asyncio
from collections.abc import Callable, Sequence

from pulse_core.composition import OWN_NAMES
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Checkpoint, Event, Head
from pulse_core.model.kinds import EventRedacted
from pulse_core.ports.log import EventLog
from pulse_core.ports.loops import coalesced, join_in_slices
from pulse_core.ports.stores import Checkpoints
from pulse_core.projections.incidents import KINDS, NAME, VERSION, IncidentFold, load
from pulse_core.projections.state import encode_in_pieces

DELAY = 3.0
"""Seconds from the start: other work is more urgent then."""
STEP, REST = 1_000, 3
"""Rows that are folded at a time, and how many times as long as that took is rested after it."""
FAR = 10_000
"""Rows after which a checkpoint is saved though no incident has changed: a reader reads those behind it."""


class IncidentCheckpoints:
    """Folds what is new at an interval, and saves the checkpoint."""

    def __init__(
        self,
        log: EventLog,
        checkpoints: Checkpoints,
        every: Callable[[], float],
        failed: Callable[[str, str], None],
    ) -> None:
        self.log, self.checkpoints, self.every, self.failed = log, checkpoints, every, failed
        self.fold = IncidentFold(own=OWN_NAMES)
        self._seq = self._saved = self._known = 0
        self._has_changed = self._is_redacted = self._is_folding = False

    async def run(self) -> None:
        """Keep the checkpoint for ever."""
        await asyncio.sleep(DELAY)
        while True:
            try:
                await self._catch_up()
                await asyncio.sleep(coalesced(self.every()))
                if self._has_changed or self._seq - self._saved >= FAR:
                    await self.save()
            except PulseError as error:
                self.failed("checkpoint", f"of the incidents: {error}")
                await asyncio.sleep(coalesced(self.every()))

    async def save(self) -> None:
        """Save the checkpoint as far as the log is folded; nothing if it has not been since."""
        if self._is_folding or self._seq == self._saved:
            return  # what was cancelled in the midst of some rows stands at none
        if (chain := await self.log.chain_at(self._seq)) is None:
            return
        text = await join_in_slices(encode_in_pieces(self.fold.state))
        await self.checkpoints.save({NAME: Checkpoint(VERSION, Head(self._seq, chain), text)})
        self._saved, self._has_changed = self._seq, False

    async def load(self) -> None:
        """Go on from the last checkpoint; to be called before there are loops that it could hold up."""
        kept = (await self.checkpoints.load()).get(NAME)
        if (
            kept is None
            or kept.version != VERSION
            or await self.log.chain_at(kept.head.seq) != kept.head.chain
        ):
            return
        try:
            self.fold = IncidentFold(load(kept.state), OWN_NAMES)
        except (ValueError, TypeError, KeyError):
            return  # a cache that can't be read is no cache
        self._seq = self._saved = self._known = kept.head.seq

    async def _catch_up(self) -> None:
        now = asyncio.get_running_loop().time
        while self._seq < (head := self.log.head.seq):
            began, upto = now(), min(self._seq + STEP, head)
            self._is_folding = True
            await self.log.feed(self._take, self._seq, KINDS | {EventRedacted.kind}, upto)
            self._seq, self._is_folding = upto, False
            if self._is_redacted:  # what was taken out of the log is not to live on here
                self.fold, self._is_redacted = IncidentFold(own=OWN_NAMES), False
                self._seq, self._known = 0, head
            if upto < head:
                await asyncio.sleep(REST * (now() - began))

    def _take(self, events: Sequence[Event]) -> None:
        self._has_changed = True
        for event in events:
            if event.kind == EventRedacted.kind:
                self._is_redacted = self._is_redacted or event.seq > self._known
            else:
                self.fold.take(event)
