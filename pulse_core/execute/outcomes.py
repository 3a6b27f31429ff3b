"""Records the outcomes of effects: those that end together are one append, which costs little more than that of one."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.record.journal import Journal


class _Outcome(NamedTuple):
    """A draft, and the future that whoever ended with it waits on."""

    draft: Draft
    done: asyncio.Future[None]


class OutcomeRecorder:
    """Appends what its callers record while it runs; nothing that was handed to it is lost if a caller is cancelled."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._waiting: list[_Outcome] = []
        self._wake = asyncio.Event()
        self._closed = False

    async def record(self, draft: Draft) -> None:
        """Return when the draft is on disk, or held in memory; raises Refused if it can be neither."""
        outcome = _Outcome(draft, asyncio.get_running_loop().create_future())
        self._waiting.append(outcome)
        self._wake.set()
        await outcome.done

    def close(self) -> None:
        """Have `run` return once nothing waits; nobody records any more."""
        self._closed = True
        self._wake.set()

    async def run(self) -> None:
        """Append what waits, until it is closed."""
        while self._waiting or not self._closed:
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            if waiting:
                await self._append(waiting)

    async def _append(self, outcomes: Sequence[_Outcome]) -> None:
        try:
            await self.journal.append_or_hold(*(one.draft for one in outcomes))
        except Refused as refused:
            if len(outcomes) > 1:  # one that no log can take must not keep out the others
                for one in outcomes:
                    await self._append([one])
            elif not (done := outcomes[0].done).done():
                done.set_exception(refused)
            return
        for one in outcomes:
            if not one.done.done():
                one.done.set_result(None)
