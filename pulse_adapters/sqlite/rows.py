"""Turns drafts into rows before they wait for their commit, so that a bad one troubles only its caller."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from pulse_adapters.sqlite.chain import seal
from pulse_adapters.sqlite.payloads import LARGE, reference
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.moment import Moment
from pulse_core.model.payload import encode
from pulse_core.ports.stores import Objects

_INTEGER = 1 << 63


class Row(NamedTuple):
    """A checked draft: its columns from `id` to `data_sha256`, its seal, and its payload in full."""

    columns: tuple[Any, ...]
    seal: bytes
    data: str

    @property
    def id(self) -> str:
        return str(self.columns[0])

    @property
    def content(self) -> tuple[Any, ...]:
        """What must agree for two drafts of one id to be the same event."""
        return content(self.columns)


def content(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Kind, subject, actor, cause and the data's hash, of columns from `id` to `data_sha256`."""
    return (*columns[4:7], columns[8], columns[10])


def prepare(draft: Draft, now: Moment, host: str, new_id: Callable[[], str]) -> Row:
    """The row of a draft; raises Refused for what cannot be recorded."""
    payload = draft.payload
    data = draft.data or encode(payload)
    at, boot, mono = draft.moment or now
    if not (-_INTEGER <= at < _INTEGER and -_INTEGER <= mono < _INTEGER):
        raise Refused(f"{payload.kind}: its moment ({at}, {mono}) is beyond 64 bits")
    name = draft.id or new_id()
    columns = (name, at, boot, mono, payload.kind, draft.subject, draft.actor, host, draft.cause)
    digest = sha256(data.encode()).digest()
    try:
        return Row((*columns, data, digest), seal(columns, digest), data)
    except ValueError as error:
        raise Refused(
            f"{payload.kind}: its id, subject, cause or actor holds a NUL or half a character"
        ) from error


def is_large(row: Row) -> bool:
    """Whether the payload is more than a row should hold."""
    return len(row.data) > LARGE // 4 and len(row.data.encode()) > LARGE


async def move_to_objects(row: Row, objects: Objects) -> Row:
    """The row with its payload in the objects and a reference in its place."""
    raw = row.data.encode()
    stored = reference(await objects.put(raw), len(raw))
    digest = sha256(stored.encode()).digest()
    return Row((*row.columns[:9], stored, digest), seal(row.columns[:9], digest), row.data)
