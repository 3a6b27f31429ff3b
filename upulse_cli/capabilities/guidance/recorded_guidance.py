"""What the log of a home holds of guidance, read beside the daemon or without one, and what is added to it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

from pulse_core.app.append import append_all
from pulse_core.app.state import checkpoints_of, foldable, in_batches, resumed
from pulse_core.guidance.events import GuidanceChanged, GuidanceImported
from pulse_core.guidance.projection import GUIDANCE, Guidance, changes_in
from pulse_core.guidance.protocol import EVENT_ID, Change, row_id
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Draft, Head
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.fold import Fold

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.ports.readers import EventReader

FOLD = Fold((GUIDANCE,))
CHANGES = (GuidanceImported.kind, GuidanceChanged.kind)
REMEMBERED = 1_000
"""Ids that were looked for."""


class RecordedGuidance:
    """`GuidanceLog` of a home, for one thread. It stays open, and folds what is new; `close` ends that."""

    def __init__(self, home: "HomeContext") -> None:
        self._home = home
        self._opened = ExitStack()
        self._reader: EventReader | None = None
        self._inode, self._head, self._state = 0, Head(), FOLD.start
        self.find = lru_cache(REMEMBERED)(self._found)

    def close(self) -> None:
        self._opened.close()
        self._reader = None

    def state(self) -> Guidance:
        """How it stands now; from its beginning on if the log is another one than before."""
        log = self._log()
        head = log.head()
        if head != self._head:
            if not self._head.seq or log.chain_at(self._head.seq) != self._head.chain:
                self._state = resumed(log, checkpoints_of(self._home, log), fold=FOLD)
            query = EventQuery(since_seq=self._state.seq, kinds=tuple(FOLD.kinds))
            for batch in in_batches(takewhile(lambda event: event.seq <= head.seq, log.events(query))):
                self._state = FOLD(self._state, [foldable(event) for event in batch])
            self._state, self._head = FOLD(self._state, (), upto=head.seq), head
        return self._state.of(GUIDANCE)

    def append(self, *drafts: Draft) -> None:
        """Record them through the daemon, or without one."""
        spelled = [
            {
                "kind": draft.payload.kind,
                "subject": draft.subject,
                "data": draft.payload.model_dump(mode="json", exclude_defaults=True),
                "cause": draft.cause,
                "id": draft.id or self._home.new_id(),
            }
            for draft in drafts
        ]
        append_all(self._home, spelled)

    def changes(self, root: str) -> Iterator[Change]:
        """All that the projection counts too, in order."""
        count = 0
        for event in self._log().events(EventQuery(kinds=CHANGES, subject=root)):
            for change in changes_in(foldable(event)):
                if change.number == count + 1:
                    count += 1
                    yield change

    def _found(self, root: str, event_id: str) -> Change | None:
        """The change of this id, by the id of its row; of an imported one, where it was imported."""
        log = self._log()
        if EVENT_ID.fullmatch(event_id):
            with suppress(UnknownName):
                event = foldable(log.event(row_id(root, event_id)))
                return next((one for one in changes_in(event) if one.id == event_id), None)
        project = self._state.of(GUIDANCE).projects.get(root)
        if project is None or not project.imports:
            return None
        query = EventQuery(kinds=(GuidanceImported.kind,), subject=root)
        for event in log.events(query, limit=project.imports):
            if found := next((one for one in changes_in(foldable(event)) if one.id == event_id), None):
                return found
        return None

    def _log(self) -> "EventReader":
        inode = os.stat(self._home.layout.events).st_ino
        if self._reader is None or inode != self._inode:
            self.close()
            self._inode, self._head = inode, Head()
            self._reader = self._opened.enter_context(self._home.events())
            self.find.cache_clear()
        return self._reader
