"""What the log of a home holds of guidance, read beside the daemon or without one, and what is added to it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from pulse_core.app.append import append_all
from pulse_core.app.state import checkpoints_of, foldable, in_batches
from pulse_core.guidance.events import GuidanceChanged, GuidanceImported
from pulse_core.guidance.projection import GUIDANCE, Guidance, changes_in
from pulse_core.guidance.protocol import EVENT_ID, Change, row_id
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Draft, Head
from pulse_core.ports.readers import EventQuery

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.ports.readers import EventReader

CHANGES = (GuidanceImported.kind, GuidanceChanged.kind)
REMEMBERED = 1_000
"""Ids that were looked for."""


class RecordedGuidance:
    """`GuidanceLog` of a home, for one thread. It stays open, and folds what is new; `close` ends that."""

    def __init__(self, home: "HomeContext") -> None:
        self._home = home
        self._opened = ExitStack()
        self._reader: EventReader | None = None
        self._inode = 0
        self._state, self._head = Guidance(), Head()
        self.find = lru_cache(REMEMBERED)(self._found)

    def close(self) -> None:
        self._opened.close()
        self._reader = None

    def state(self) -> Guidance:
        """How it stands now; from its beginning on if the log is another one than before."""
        log = self._log()
        head = log.head()
        if head == self._head:
            return self._state
        if log.chain_at(self._head.seq) != self._head.chain:
            self._begin(log)
        query = EventQuery(since_seq=self._head.seq, kinds=tuple(GUIDANCE.kinds))
        for batch in in_batches(log.events(query)):
            events = [foldable(event) for event in batch if event.seq <= head.seq]
            self._state = GUIDANCE.after(self._state, events)
        self._head = head
        return self._state

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
        project = self._state.projects.get(root)
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
            self._begin(self._reader)
        return self._reader

    def _begin(self, log: "EventReader") -> None:
        """Begin at the checkpoint, or with the first row."""
        self._state, self._head = Guidance(), Head()
        found = checkpoints_of(self._home, log).get(GUIDANCE.name)
        if found and found.version == GUIDANCE.version:
            self._state, self._head = GUIDANCE.load(found.state), found.head
