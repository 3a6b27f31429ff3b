"""The event log in events.db: one writing connection with a thread of its own, one that reads."""

import asyncio
import logging
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import uuid_utils

from pulse_adapters.sqlite.chain import COLUMNS
from pulse_adapters.sqlite.commits import Commits, is_large, move_to_objects, prepare
from pulse_adapters.sqlite.connect import connect_readonly
from pulse_adapters.sqlite.connection_thread import ThreadConnection, connect_in_thread
from pulse_adapters.sqlite.errors import translate_error, unavailable
from pulse_adapters.sqlite.open_log import Opening, Start, open_to_read, open_writer
from pulse_adapters.sqlite.payloads import LostPayload, all_plain, is_reference, payload_in
from pulse_adapters.sqlite.redactions import KIND, SAID
from pulse_adapters.sqlite.reserve import Reserve
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.plain_file import has_match
from pulse_adapters.workers.read_only import why_no_new_file
from pulse_core.model.errors import Damaged, LogUnavailable, PulseError
from pulse_core.model.event import NO_CHAIN, Draft, Event, Head
from pulse_core.model.kinds import EventRedacted
from pulse_core.model.stored_data import REDACTED
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import Listener
from pulse_core.ports.stores import Objects

LOG = logging.getLogger("pulse.log")
T = TypeVar("T")
BATCH = 2_000
_LAST = (1 << 63) - 1
_MAKE: Callable[[Iterable[Any]], Event] = partial(tuple.__new__, Event)
"""A row as an event; without the count of columns that `Event._make` checks, since the query names them."""


def new_id() -> str:
    """A UUIDv7 as text."""
    return str(uuid_utils.uuid7())


class Connections(NamedTuple):
    """The connection that writes, the one that reads, and where the log stood when they were made."""

    writer: ThreadConnection
    reader: ThreadConnection
    start: Start


_REDACTABLE = """SELECT kind, data_sha256, data IS NULL AND NOT EXISTS (SELECT 1 FROM event WHERE id = ?)
    FROM event WHERE id = ?"""
"""What a redaction must know of the event that it names; one that is asked for again, by its id, is no second one."""


@asynccontextmanager
async def connected(
    path: Path, open_log: Callable[[], tuple[sqlite3.Connection, Start]]
) -> AsyncIterator[Connections]:
    """Both connections, each with a thread of its own."""
    async with (
        connect_in_thread(open_log) as (writer, start),
        connect_in_thread(lambda: (connect_readonly(path), None)) as (reader, _),
    ):
        yield Connections(writer, reader, start)


def _holds_redaction(path: Path) -> bool:
    """Whether a row of the -wal says that another one was redacted: its kind is followed by the other one's id."""
    pattern = re.compile(rb"%s[0-9a-f]{8}-" % KIND.encode())
    try:
        with files_of(path).wal.open("rb") as file:
            return has_match(file, pattern, len(KIND) + 9)
    except OSError:  # there is none, or the next commit says what is wrong
        return False


class SqliteEventLog:
    """`EventLog` on SQLite; made by `open`.

    reconnect: closes the connections and makes others, to write or (False) to read alone.
    """

    def __init__(
        self,
        commits: Commits,
        connections: Connections,
        reconnect: Callable[[bool], Awaitable[Connections]],
        path: Path,
        how: Opening,
        clock: Clock,
        objects: Objects,
        new_id: Callable[[], str],
    ) -> None:
        self._commits = commits
        _, self._reader, start = connections
        self._is_read_only, self._reconnect, self._connecting = start.is_read_only, reconnect, asyncio.Lock()
        self._path = path
        self.host, self.torn = start.host, start.torn
        """The home's UUID, in every row that this log writes; words about a torn transaction that was left away at open."""
        self._accepted = start.seq if how.accept_damage else 0
        self._clock = clock
        self._objects = objects
        self._new_id = new_id
        self._may_be_lost: int | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        objects: Objects,
        reserve: Path | None = None,
        how: Opening = Opening(),  # noqa: B008  a frozen value
        new_id: Callable[[], str] = new_id,
    ) -> AsyncIterator["SqliteEventLog"]:
        """The log at `path`, made if there is none. The caller holds the home's lock: there is one writer.

        Raises Damaged, NewerFormat or LogUnavailable. Leaving commits what waits. Where no -wal can be made or
        written nothing can be appended until it can.
        """
        blocks = Reserve(reserve) if reserve else None
        async with AsyncExitStack() as stack:

            async def connect(to_write: bool = True) -> Connections:
                await stack.aclose()
                opener = (
                    partial(open_writer, path, how, blocks) if to_write else partial(open_to_read, path, how)
                )
                return await stack.enter_async_context(connected(path, opener))

            connections = await connect()
            start = connections.start
            commits = Commits(connections.writer, path, Head(start.seq, start.chain), blocks)
            try:
                if not start.is_read_only and await asyncio.to_thread(_holds_redaction, path):
                    await commits.empty_wal()  # whoever redacted was killed before that
                yield cls(commits, connections, connect, path, how, clock, objects, new_id)
            finally:
                await commits.close()

    @property
    def head(self) -> Head:
        return self._commits.head

    async def append(self, *drafts: Draft) -> Sequence[Event]:
        if not drafts:
            return ()
        if self._is_read_only:
            await self._connect_to_write()
        if any(draft.payload.kind == KIND for draft in drafts):
            drafts = tuple([await self._with_digest(draft) for draft in drafts])
        now = self._clock.now()
        rows = [prepare(draft, now, self.host, self._new_id) for draft in drafts]
        if any(map(is_large, rows)):
            rows = [await move_to_objects(row, self._objects) if is_large(row) else row for row in rows]
        return await self._commits.record(rows)

    async def _connect_to_write(self) -> None:
        """Open the log anew, to write it, or raise LogUnavailable.

        What was open is closed before: its -shm can't be written, and a process has but one of them.
        """
        async with self._connecting:
            if not self._is_read_only:
                return
            directory = files_of(self._path).database.parent
            if why := await asyncio.to_thread(why_no_new_file, directory):
                raise LogUnavailable(f"{self._path} can't be written, nothing was recorded: {why}")
            await self._commits.check()  # what was deleted is only there while it is open
            try:
                writer, self._reader, start = await self._reconnect(True)
            except PulseError as error:
                with suppress(PulseError):  # then nothing can be read either, until the next append
                    writer, self._reader, _ = await self._reconnect(False)
                    await self._commits.continue_over(writer)
                raise LogUnavailable(str(error)) from error
            await self._commits.continue_over(writer)
            if start.is_read_only:
                raise LogUnavailable(
                    f"{self._path} can't be written, nothing was recorded: make room on its disk"
                )
            self._is_read_only = False

    async def keep(self, *drafts: Draft) -> bool:
        now = self._clock.now()
        try:
            return await self._commits.keep(
                [prepare(draft, now, self.host, self._new_id) for draft in drafts]
            )
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error

    async def check(self) -> None:
        await self._commits.check()

    @property
    def written_by_others(self) -> asyncio.Event:
        """Set when somebody else has written into the file, so that its rows are to be read again."""
        return self._commits.written_by_others

    def listen(self, listener: Listener) -> None:
        self._commits.listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        self._commits.listeners.remove(listener)

    def since(
        self, seq: int, kinds: Collection[str] | None = None, upto: int | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        return self._batches(lambda events: events, seq, kinds, upto)

    async def feed(
        self,
        take: Callable[[Sequence[Event]], None],
        seq: int,
        kinds: Collection[str] | None = None,
        upto: int | None = None,
    ) -> None:
        """Take them in the thread that reads them: they are in the cache of its core, and are freed there, too."""
        async for _ in self._batches(take, seq, kinds, upto):
            pass

    async def _batches(
        self,
        make: Callable[[Sequence[Event]], T],
        seq: int,
        kinds: Collection[str] | None,
        upto: int | None,
    ) -> AsyncIterator[T]:
        """What `make` returns of each batch, mostly in the thread of the connection.

        Each batch is a query of its own: a slow reader holds no snapshot, so the -wal can wrap.
        """
        wanted = "" if kinds is None else f"AND +kind IN ({','.join('?' * len(kinds))})"
        sql = f"SELECT {COLUMNS} FROM event WHERE seq > ? AND seq <= ? {wanted} ORDER BY seq LIMIT {BATCH}"
        last = _LAST if upto is None else upto

        def read(seq: int, connection: sqlite3.Connection) -> tuple[int | None, list[T], list[Any]]:
            """After which row there may be more, what was made, and the rows of which nothing could be made yet."""
            rows = connection.execute(sql, (seq, last, *(kinds or ()))).fetchall()
            more_after = rows[-1][0] if len(rows) == BATCH else None
            if not all_plain([row[10] for row in rows]):
                return more_after, [], rows
            return more_after, [make(list(map(_MAKE, rows)))] if rows else [], []

        more_after: int | None = seq
        while more_after is not None:
            more_after, made, rows = await self._run(partial(read, more_after))
            for one in made:
                yield one
            if rows:
                yield make(await self._events(rows))

    async def has(self, id_: str) -> bool:
        return bool(await self._read("SELECT 1 FROM event WHERE id = ?", (id_,)))

    async def chain_at(self, seq: int) -> bytes | None:
        if seq == 0:
            return NO_CHAIN
        rows = await self._read("SELECT chain FROM event WHERE seq = ?", (seq,))
        return rows[0][0] if rows else None

    async def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        return await self._run(lambda connection: connection.execute(sql, values).fetchall())

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            async with self._connecting:
                return await self._reader.run(work)
        except sqlite3.Error as error:
            raise translate_error(error, self._path) from error

    async def _events(self, rows: list[Any]) -> Sequence[Event]:
        events = list(map(_MAKE, rows))
        for place, (seq, *_, data) in enumerate(rows):
            if data is None:
                await self._refuse_emptied(seq)
                events[place] = events[place]._replace(data=REDACTED)
            elif is_reference(data):
                whole = await self._payload(seq, events[place].kind, data)
                events[place] = events[place]._replace(data=whole)
        return events

    async def _with_digest(self, draft: Draft) -> Draft:
        """A redaction with the hash of what it empties; raises Refused if there is nothing that it may empty."""
        if not isinstance(draft.payload, EventRedacted):
            return draft
        found = await self._read(_REDACTABLE, (draft.id, draft.subject))
        return draft.payload.completed(draft, *(found[0] if found else ("", b"", False)))

    async def _refuse_emptied(self, seq: int) -> None:
        """Raise Damaged if this row without data was not redacted, and nobody has accepted that."""
        if seq <= await self._last_accepted():
            return
        if not (
            await self._read(SAID.format(""), (seq,)) or await self._read(SAID.format("NOT INDEXED"), (seq,))
        ):
            raise Damaged(
                f"{self._path}: the data of row {seq} is gone, and no event-redacted names it; restore it from a backup,"
                " or go on without it: `upulse daemon start --accept-damage` keeps a copy of the log in damaged/ first"
            )

    async def _last_accepted(self) -> int:
        """The last row that was there when somebody accepted damage; 0 if nobody did."""
        if self._may_be_lost is None:
            rows = await self._read("SELECT max(seq) FROM event WHERE +kind = 'damage-accepted'", ())
            self._may_be_lost = max(self._accepted, rows[0][0] or 0)
        return self._may_be_lost

    async def _payload(self, seq: int, kind: str, data: str) -> str:
        """The large payload of a row. If it is lost: as of a redacted row, where a person accepted that; else Damaged.

        A fold that passed it over unasked would go on with less than was recorded.
        """
        try:
            return await asyncio.to_thread(payload_in, self._path.parent / "objects", data)
        except LostPayload as lost:
            if seq > await self._last_accepted():
                raise Damaged(
                    f"{self._path}: the payload of row {seq} ({kind}) is lost: {lost}; restore it from a backup,"
                    " or go on without it: `upulse daemon start --accept-damage` keeps a copy of the log in damaged/ first"
                ) from lost
            LOG.warning("the payload of row %d (%s) is lost, as was accepted: %s", seq, kind, lost)
            return REDACTED
