"""Handles requests from outside the daemon: append, follow, state, status."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.app.projections import described_projection
from pulse_core.capability import Scope
from pulse_core.daemon.shared_report import SharedReport
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role, parse
from pulse_core.ports.log import EventLog
from pulse_core.projections.state import State
from pulse_core.record.gate import Gate

OPERATIONS = ("append", "follow", "state", "status")
MAX_DRAFTS = 1_000
FOLLOW_DELAY = 0.02
"""Seconds until new events are read for followers: longer than a reflex, which must not wait for them."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Caller(NamedTuple):
    """The caller: the role of the socket's peer, the name that its events bear as actor, and what it is bound to."""

    role: Role
    name: str
    scope: Scope | None = None


@dataclass(frozen=True)
class RequestHandler:
    """Answers requests, each with one or many JSON objects. state: the projections after the last event on disk."""

    gate: Gate
    log: EventLog
    report: Callable[[], Mapping[str, Json]]
    state: Callable[[], State]
    shared: SharedReport = field(default_factory=SharedReport, init=False)

    def answer(self, caller: Caller, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
        """The answer to one request; raises Refused or UnknownName for what cannot be answered."""
        operation = str(request.get("op", ""))
        if caller.role < Role.AGENT:
            raise Refused(
                "you may not talk to this daemon; be its owner, root, or in the group of [socket] group"
            )
        if caller.scope and operation not in ("append", "state"):
            raise Refused(
                f"a run of an agent may append and ask for its state, which is its task; not {operation}"
            )
        match operation:
            case "append":
                return self._append(caller, request)
            case "follow":
                return self._follow(request)
            case "state":
                return self._scope(caller.scope) if caller.scope else self._projection(request)
            case "status":
                return self._status()
        raise UnknownName("operation", operation, OPERATIONS)

    async def _status(self) -> AsyncIterator[Mapping[str, Json]]:
        yield await self.shared.after_now(self.report)

    async def _projection(self, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
        """One projection: for agents, which may talk to the daemon but can't read its home. The loop goes on meanwhile."""
        yield await asyncio.to_thread(described_projection, self.state(), str(request.get("projection", "")))

    async def _scope(self, scope: Scope) -> AsyncIterator[Mapping[str, Json]]:
        yield {"value": scope.shown(self.state())}

    async def _append(self, caller: Caller, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
        recorded = await self.gate.append(caller.role, caller.name, parse_drafts(request), caller.scope)
        yield {"events": [{**one.event.spelled(), "existing": one.existing} for one in recorded]}

    async def _follow(self, request: Mapping[str, Json]) -> AsyncIterator[Mapping[str, Json]]:
        """Events after `since` as they come, each by itself, for ever; only `kinds` if given."""
        kinds, seq = requested_kinds(request), requested_since(request, self.log.head.seq)
        news = asyncio.Event()
        self.log.listen(listener := lambda _events: news.set())
        try:
            while True:
                news.clear()
                head = self.log.head.seq
                async for events in self.log.since(seq, kinds, head):
                    for event in events:
                        yield {"event": event.spelled()}
                seq = max(seq, head)
                await news.wait()
                await asyncio.sleep(FOLLOW_DELAY)
        finally:
            self.log.unlisten(listener)


def requested_kinds(request: Mapping[str, Json]) -> frozenset[str] | None:
    """The kinds that a follower requests; None for all."""
    kinds = request.get("kinds") or []
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise Refused("follow takes kinds as a list of names, or leaves them out for all")
    return frozenset(kinds) or None


def requested_since(request: Mapping[str, Json], head: int) -> int:
    """The row after which a follower wants events; by default the last one."""
    since = request.get("since")
    if since is None:
        return head
    if not isinstance(since, int) or isinstance(since, bool) or not 0 <= since < 1 << 63:
        raise Refused("follow takes since as a row number, 0 or more, or leaves it out for what is new")
    return since


def parse_drafts(request: Mapping[str, Json]) -> Sequence[Draft]:
    """Parse the drafts of an append request; raises Refused or UnknownName with what is wrong in them."""
    rows = request.get("drafts")
    if (
        not isinstance(rows, list)
        or not 0 < len(rows) <= MAX_DRAFTS
        or not all(isinstance(row, dict) for row in rows)
    ):
        raise Refused(f"append needs drafts: a list of 1 to {MAX_DRAFTS} objects with kind, subject and data")
    return [parse_draft(row) for row in rows]


def parse_draft(row: Mapping[str, Json]) -> Draft:
    """Parse one draft from JSON."""
    data, cause, id_ = row.get("data", {}), row.get("cause"), str(row.get("id", ""))
    if not isinstance(data, dict) or not isinstance(cause, str | None):
        raise Refused("a draft's data is an object and its cause an event id or nothing")
    if cause is not None and not UUID.fullmatch(cause):
        raise Refused(f"{cause!r} is no event id; a draft's cause is a UUID in lower case, or nothing")
    if id_ and not (UUID.fullmatch(id_) and id_.strip("0-")):
        raise Refused(f"{id_!r} is no event id; give a UUIDv7 in lower case, or leave it out")
    return Draft(parse(str(row.get("kind", "")), data), str(row.get("subject", "")), cause, id_)
