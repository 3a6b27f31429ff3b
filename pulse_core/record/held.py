"""Drafts that wait for the disk: bounded in size, and what survival goes by is crowded out by nothing.

Over the bound older rows give way to newer ones that say the same, until there is some room again:

1. lines of logs and reports of errors, but not the newest of each source, which says how far it is read;
2. the stories of settled effects, as wholes, but not the last one of each key; and what is not the newest row of its
   kind and subject: an earlier death of a process, an earlier attempt of an effect;
3. the newest line of each source, too.

What stays is as much as there are subjects (processes, conditions, open effects), however long the disk takes nothing; and
where that is more than the bound, a quarter more, since each search for what may give way looks at all.
What is left out is counted. A fold over what stays ends where a fold over all would: which process is up, which effect
is open, which condition stands; only counts and histories are shorter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, ErrorReported, LogMatched
from pulse_core.model.names import SETTLING

MAX_ROWS = 1_000
MAX_CHARACTERS = 4_000_000
EXPENDABLE = frozenset({LogMatched.kind, ErrorReported.kind})


class HeldDrafts:
    """The drafts in their order, each with an id and its data encoded.

    left_out: how many there was no room for, by kind; lines: how many matching lines were in those.
    """

    def __init__(self, rows: int = MAX_ROWS, characters: int = MAX_CHARACTERS) -> None:
        self._bounds = rows, characters
        self._drafts: dict[str, Draft] = {}
        self._characters = 0
        self._most = 1.0
        """The share of the bounds over which room is made."""
        self.left_out: Counter[str] = Counter()
        self.lines = 0

    def __len__(self) -> int:
        return len(self._drafts)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._drafts

    def __iter__(self) -> Iterator[Draft]:
        return iter(self._drafts.values())

    def add(self, drafts: Sequence[Draft]) -> Sequence[str]:
        """Hold these, too; returns the ids of those that are left out instead."""
        for draft in drafts:
            self.remove(draft.id)
            self._drafts[draft.id] = draft
            self._characters += len(draft.data)
        return self._make_room() if self._is_over(self._most) else ()

    def remove(self, id_: str) -> None:
        """Hold this one no longer; does nothing if it is not held."""
        if draft := self._drafts.pop(id_, None):
            self._characters -= len(draft.data)
            self._most = self._most if self._drafts else 1.0

    def leave_out(self, id_: str) -> None:
        """Hold this one no longer, and count it."""
        draft = self._drafts[id_]
        self.left_out[draft.payload.kind] += 1
        if isinstance(draft.payload, LogMatched):
            self.lines += draft.payload.count
        self.remove(id_)

    def reset_counts(self) -> None:
        """Count anew what is left out."""
        self.left_out, self.lines = Counter(), 0

    def _is_over(self, share: float) -> bool:
        rows, characters = self._bounds
        return len(self._drafts) > rows * share or self._characters > characters * share

    def _make_room(self) -> Sequence[str]:
        """Leave out so many that the next ones need no search; returns their ids."""
        gone: list[str] = []
        for together in self._dispensable():
            if not self._is_over(0.75):
                break
            for id_ in filter(self._drafts.__contains__, together):
                self.leave_out(id_)
                gone.append(id_)
        rows, characters = self._bounds
        self._most = max(1.0, 1.25 * len(self._drafts) / rows, 1.25 * self._characters / characters)
        return gone

    def _dispensable(self) -> Iterator[Sequence[str]]:
        """Ids of drafts that may be left out together, what is missed least first."""
        drafts = tuple(self._drafts.values())
        newest = {(draft.payload.kind, draft.subject): draft.id for draft in drafts}
        lines = [draft for draft in drafts if draft.payload.kind in EXPENDABLE]
        last_lines = [one.id for one in lines if newest[one.payload.kind, one.subject] == one.id]
        yield from ((one.id,) for one in lines if newest[one.payload.kind, one.subject] != one.id)

        stories: dict[str, list[str]] = {}
        last: dict[str, str] = {}
        for draft in drafts:
            if draft.payload.kind == Effect.kind:
                stories[draft.id], last[draft.subject] = [draft.id], draft.id
            elif draft.subject in stories:
                stories[draft.subject].append(draft.id)
        settled = {draft.subject for draft in drafts if draft.payload.kind in SETTLING}
        for draft in drafts:
            if draft.payload.kind == Effect.kind:
                if draft.id in settled and last[draft.subject] != draft.id:
                    yield stories[draft.id]
            elif newest[draft.payload.kind, draft.subject] != draft.id:
                yield (draft.id,)
        yield from ((id_,) for id_ in last_lines)
