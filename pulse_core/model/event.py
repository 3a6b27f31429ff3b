"""Recorded events (`Event`), drafts of events to record (`Draft`), and checkpoints of what was folded from them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pulse_core.model.errors import Damaged
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment, iso
from pulse_core.model.stored_data import read_data

if TYPE_CHECKING:
    from pulse_core.model.payload import Payload

NO_CHAIN = bytes(32)


class Head(NamedTuple):
    """Where a log stands: the last sequence number and the chain value of that row (32 bytes)."""

    seq: int = 0
    chain: bytes = NO_CHAIN


class Checkpoint(NamedTuple):
    """A projection's value as JSON text, the version of its fold, and the row of the log it stands at.

    With it the next start need not fold the whole log.
    """

    version: int
    head: Head
    state: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A payload on its way into the log; the writer adds everything else.

    subject: what it is about (the id of an effect, the name of a process); cause: the id of the event that led to it;
    id: a UUIDv7, given by a caller that may have to repeat the append; actor: who requests it, set by the writer;
    moment: when it happened, if not now; data: the payload as JSON text, if it was checked and encoded already.
    """

    payload: "Payload"
    subject: str = ""
    cause: str | None = None
    id: str = ""
    actor: str = "pulse"
    moment: Moment | None = None
    data: str = ""


_MOMENT: Callable[[Iterable[Any]], Moment] = partial(tuple.__new__, Moment)
"""Makes a moment from an event's columns without checks: folds make hundreds of thousands."""


class Event(NamedTuple):
    """A recorded fact. `seq` is the only order; `data` is the payload's JSON text as stored."""

    seq: int
    id: str
    at: int
    boot: str
    mono: int
    kind: str
    subject: str
    actor: str
    host: str
    cause: str | None
    data: str

    @property
    def moment(self) -> Moment:
        """When it happened."""
        return _MOMENT(self[2:5])

    @property
    def payload(self) -> "Payload | None":
        """The decoded payload; None for a kind that this version does not know. Raises Damaged for another kind's data."""
        from pulse_core.model.payload import (
            decode,  # loads pydantic, which a reader of events needs only here
        )

        try:
            return decode(self.kind, self.data)
        except ValueError as error:
            words = f"row {self.seq} has data that no {self.kind} has; it was written by hand, or by another version"
            raise Damaged(f"{words}; see: upulse verify") from error

    def spelled(self) -> dict[str, Json]:
        """The event as JSON values for people and programs: `at` in ISO 8601 UTC, `data` decoded."""
        values = self._asdict() | {"at": iso(self.at), "data": read_data(self.data)}
        del values["boot"], values["mono"]
        return values
