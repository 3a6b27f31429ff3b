"""Group commit: whatever waits is written with one statement, and each caller hears of its own part.

Drafts are made rows before they wait, so that a bad one troubles only its caller.
"""

import asyncio
import json
import logging
import sqlite3
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pulse_adapters.sqlite.chain import link, seal
from pulse_adapters.sqlite.connect import head_of
from pulse_adapters.sqlite.connection_thread import ThreadConnection
from pulse_adapters.sqlite.errors import code, unavailable
from pulse_adapters.sqlite.last_write import LastRow
from pulse_adapters.sqlite.log_files import CUT, LogFiles, save_rows
from pulse_adapters.sqlite.payloads import LARGE, reference
from pulse_adapters.sqlite.redactions import EMPTY, KIND
from pulse_adapters.sqlite.reserve import Reserve
from pulse_adapters.sqlite.wal_watch import ALTERED
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Conflict, LogGone, LogUnavailable, Refused
from pulse_core.model.event import Draft, Event, Head
from pulse_core.model.moment import Moment
from pulse_core.model.payload import encode
from pulse_core.model.text import are, count
from pulse_core.ports.log import Listener
from pulse_core.ports.stores import Objects

LOG = logging.getLogger("pulse.log")
GROUP = 256
"""Rows after which no further caller joins a commit; larger statements are slower by the row."""

LOOK_INTERVAL = 0.02
"""Seconds between two looks at the files while one commit follows the other: each look costs as much as a tenth of one.
What is acknowledged in between is among the rows that are saved."""

FRAMES = 50
"""New frames of the -wal that one check looks at: each takes a millisecond. A stop looks at all."""

MOVED = 1_000
"""Frames of the -wal from which on they are moved into events.db after each commit, as SQLite does by itself."""

STATEMENT = 2_000
"""Most rows of one statement: 13 variables each, below the 32,766 that any SQLite allows."""

_SELECT = "SELECT seq, id, at, boot, mono, kind, subject, actor, host, cause, data, data_sha256 FROM event"
_VALUES = "(?,?,?,?,?,?,?,?,?,?,?,?,?)"
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


class CommitCall(NamedTuple):
    """One caller's rows, and the future it waits on."""

    rows: Sequence[Row]
    done: "asyncio.Future[Sequence[Event]]"

    def settle(self, outcome: Sequence[Event] | Exception) -> None:
        """Give the caller its events, or the error, if it still waits."""
        if self.done.done():
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


class Commits:
    """The queue in front of the writer's connection, and the one task that empties it.

    The task runs until `close`; a caller that is cancelled takes nothing with it, since it only waits. The files are looked
    at in threads alone: the server of a disk may not answer what is only asked of them, either.
    """

    def __init__(self, connection: ThreadConnection, path: Path, head: Head, reserve: Reserve | None) -> None:
        """The database is open in WAL mode, and was read."""
        self.head = head
        self.listeners: list[Listener] = []
        self._connection = connection
        self._path = path
        self._reserve = reserve
        self._waiting: deque[CommitCall] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._files, self._last_row = LogFiles(path), LastRow(path)
        self._last_row.note(head.seq)
        self._looked = float("-inf")
        self.written_by_others = asyncio.Event()
        """Set when somebody else has written into events.db, so that its rows are to be read again."""
        self._loop = asyncio.get_running_loop()
        self._looking, self._writing = threading.Lock(), threading.Lock()
        """Held while somebody looks at the files, and while events.db is written from here."""
        self._fault = self._gone = ""
        self._saved: tuple[int, ...] = ()
        self._is_kept = False
        self._saving: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run(), name=f"commits of {path.name}")

    async def continue_over(self, connection: ThreadConnection) -> None:
        """Write over this connection from now on; the database is the same, and at the same head."""
        await asyncio.to_thread(self._last_row.close)
        self._connection, self._files = connection, await asyncio.to_thread(LogFiles, self._path)
        self._last_row = await asyncio.to_thread(LastRow, self._path)

    async def record(self, rows: Sequence[Row]) -> Sequence[Event]:
        """The rows as events, once they are on disk."""
        if self._closed:
            raise LogUnavailable(f"{self._path} is closed; nothing was recorded")
        call = CommitCall(rows, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        self._wake.set()
        return await call.done

    async def close(self) -> None:
        """Commit what waits, then end; the task ends even if whoever closes is cancelled."""
        self._closed = True
        self._wake.set()
        await asyncio.wait({self._task})
        await asyncio.to_thread(self._last_row.close)
        with suppress(LogGone):
            await self.check()
        if self._gone and not await asyncio.to_thread(self._is_saved):
            LOG.critical("%s: its %d rows are LOST: %s", self._path, self.head.seq, self._gone)

    async def check(self) -> None:
        """Raise LogGone if the files are not those that were opened, once their rows are saved."""
        if await self._notice_gone() or (not self._files.is_wal_as_found and await self._notice_altered()):
            assert self._saving is not None
            await asyncio.wait({self._saving})
            raise LogGone(self._gone)

    def _notice_others(self) -> None:
        if self._files.is_written_by_others():
            self._loop.call_soon_threadsafe(self.written_by_others.set)

    async def _notice_gone(self) -> bool:
        """Whether the files are gone; saves their rows beside them if they are not saved yet, or what was saved is gone.

        Raises LogGone as `_look` does.
        """
        is_gone, is_saved = await asyncio.to_thread(self._look)
        if is_gone and not is_saved and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(self._save(), name=f"saving {self._path.name}")
        return is_gone

    def _look(self) -> tuple[bool, bool]:
        """Whether the files are gone, and whether their rows are saved. For threads.

        Raises LogGone if they were only moved as they are, or hidden: then they are whole where they lie, and may come
        back. Where those that were gone are back, they are the log again, once what was saved is removed: beside that nobody
        takes them for it.
        """
        with self._looking:
            if self._writing.acquire(blocking=False):
                try:
                    self._notice_others()
                finally:
                    self._writing.release()
            self._look_for_files()
            return bool(self._gone), bool(self._gone) and self._is_saved()

    def _look_for_files(self) -> None:
        is_back = self._gone and not self._is_kept and self._is_back()
        if is_back and self._files.remove(_saved_name(self._path)):
            LOG.warning("%s is where it was: it is written again", self._path)
            self._gone, self._saved = "", ()
        if not self._gone and (fault := self._files.fault(self.head)):
            if place := self._files.moved_to():
                raise LogGone(
                    f"{self._path.parent} was moved to {place} while the daemon had it open: nothing is recorded any more,"
                    f" and nothing is lost; move it back, or have the daemon serve it there:"
                    f" upulse daemon restart --home {place}"
                )
            if self._files.are_elsewhere():
                raise LogGone(
                    f"something was mounted over {self._path.parent} while the daemon had it open, or what was mounted there"
                    f" is gone: nothing is recorded any more, and nothing is lost; umount {self._path.parent}, or mount"
                    " again what is gone"
                )
            self._refuse(fault)

    async def _notice_altered(self) -> bool:
        """Whether a frame of the -wal is not what was written, which only the open connection can still mend."""
        wal, limit = self._files.wal, sys.maxsize if self._closed else FRAMES
        if fault := await asyncio.to_thread(wal.fault, limit):
            self._refuse(fault)
        return await self._notice_gone()

    def _refuse(self, fault: str) -> None:
        self._fault = fault
        self._gone = f"{fault} while the daemon had it open: nothing is recorded any more"
        LOG.critical("%s; its rows are being saved", self._gone)

    async def _save(self) -> None:
        """Save the rows from the connection, which has the files still open; how that went is part of what is said."""
        saved = self._path.with_name(_saved_name(self._path))
        try:
            saved = await asyncio.to_thread(self._files.own_home) / saved.name
            last = await save_rows(self._connection, saved, self._path if self._is_spoiled() else None)
        except (OSError, sqlite3.Error) as error:
            how = f"its rows could not be saved in {saved} ({error}), which is tried again; don't stop the daemon"
        else:
            self._saved = await asyncio.to_thread(self._files.version, saved.name)
            more = self.head.seq - last
            lost = f", and {more} after that {are(more)} LOST" if more > 0 else ""
            how = (
                f"its {count(last, 'row')} {are(last)} saved in {saved}{lost}; stop the daemon (upulse daemon stop), then:"
                " upulse doctor --repair"
            )
        self._gone = f"{self._fault} while the daemon had it open: nothing is recorded any more; {how}"
        LOG.critical("%s", self._gone)

    async def keep(self, rows: Sequence[Row]) -> bool:
        """Append these to the rows that were saved; False if none were. Raises sqlite3.Error."""
        if not self._gone:
            return False
        with suppress(LogGone):
            await self.check()
        return await asyncio.to_thread(self._append_to_saved, rows)

    def _append_to_saved(self, rows: Sequence[Row]) -> bool:
        if self._is_saved():
            with suppress(OSError):
                saved = self._files.own_home() / _saved_name(self._path)
                _append(saved, rows)
                self._saved, self._is_kept = self._files.version(saved.name), True
        return self._is_kept and self._is_saved()

    def _is_saved(self) -> bool:
        """Whether the saved rows lie there as they were left."""
        return bool(self._saved) and self._files.version(_saved_name(self._path)) == self._saved

    def _is_back(self) -> bool:
        """Whether the files that were gone lie there again, as they were left."""
        is_saving = self._saving is not None and not self._saving.done()
        return not is_saving and not self._is_spoiled() and not self._files.fault(self.head)

    def _is_spoiled(self) -> bool:
        """Whether the files lie where they were, and rows in them are gone."""
        return self._fault.endswith((CUT, ALTERED))

    async def _run(self) -> None:
        while not (self._closed and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._commit(self._group())

    def _group(self) -> list[CommitCall]:
        group = [self._waiting.popleft()]
        size = len(group[0].rows)
        while self._waiting and (size := size + len(self._waiting[0].rows)) <= GROUP:
            group.append(self._waiting.popleft())
        return group

    async def _commit(self, group: list[CommitCall]) -> None:
        try:
            await self._write(group)
        except sqlite3.Error as error:
            _fail(group, unavailable(error, self._path))
        except Exception as error:  # noqa: BLE001  the callers get it, and the next group its turn
            _fail(group, error)
        except BaseException:
            self._closed = True
            _fail([*group, *self._waiting], LogUnavailable(f"{self._path}: the commit was broken off"))
            raise

    async def _write(self, group: list[CommitCall]) -> None:
        if self._gone:
            raise LogGone(self._gone)
        try:
            events = await self._insert([row for call in group for row in call.rows])
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_TRIGGER:
                raise
            await self._sort_out(group)
            return
        start = 0
        for call in group:
            call.settle(events[start : start + len(call.rows)])
            start += len(call.rows)

    async def _sort_out(self, group: list[CommitCall]) -> None:
        """An id was there already: answer repeated drafts with what is recorded, refuse other content."""
        ids = list({row.id for call in group for row in call.rows})
        where = "WHERE id IN (SELECT value FROM json_each(?))"
        found = await self._connection.execute_fetchall(f"{_SELECT} {where}", (json.dumps(ids),))
        known = {row[1]: tuple(row) for row in found}
        events: dict[str, Event] = {}
        fresh: dict[str, Row] = {}
        agreed = []
        for call in group:
            try:
                fresh |= _new_rows(call.rows, known, fresh)
            except Conflict as error:
                call.settle(error)
            else:
                agreed.append(call)
        if fresh:
            events = {event.id: event for event in await self._insert(list(fresh.values()))}
        for (
            call
        ) in agreed:  # the payload of what is recorded is the draft's, which has the same hash and is whole
            call.settle(
                [events.get(row.id) or Event._make((*known[row.id][:10], row.data)) for row in call.rows]
            )

    async def _insert(self, rows: Sequence[Row]) -> Sequence[Event]:
        """Write the rows at the head, tell the listeners; the head moves only once they are on disk."""
        events, statements, head = _placed(rows, self.head)
        try:
            await self._execute(statements, head.seq)
        except LogGone:
            await self._notice_gone()
            raise
        except sqlite3.OperationalError as error:
            is_full = code(error) == sqlite3.SQLITE_FULL
            if not (is_full and self._reserve and await asyncio.to_thread(self._reserve.free)):
                raise
            await self._execute(statements, head.seq)
        self.head = head
        if any(event.kind == KIND for event in events):
            await self.empty_wal()
        for listener in tuple(self.listeners):  # one may leave while it is told
            try:
                listener(events)
            except Exception as error:  # noqa: BLE001  the rows are on disk: their callers must hear so
                context = {"message": f"a listener of {self._path} failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
        return events

    async def empty_wal(self) -> None:
        """Leave nothing of what was redacted in the -wal; beside a reader it stays until the next checkpoint."""

        def work(connection: sqlite3.Connection) -> None:
            with self._writing:
                self._checkpoint("TRUNCATE", connection)
                self._files.sync_wal()
                self._files.on_write()

        await self._connection.run(work)

    def _checkpoint(self, how: str, connection: sqlite3.Connection) -> None:
        """Move the -wal into the database; what can't be moved now is still in the -wal."""
        try:
            connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        except sqlite3.Error:
            self._files.forget_unwritten()

    async def _execute(self, statements: list[tuple[str, list[Any]]], last: int) -> None:
        """One statement commits by itself; more than one need a transaction around them. Raises LogGone.

        All in the connection's thread: a disk that hangs would hold up the event loop.
        """
        now = self._loop.time()

        def work(connection: sqlite3.Connection) -> None:
            if now >= self._looked + LOOK_INTERVAL or self._files.is_wal_shorter():
                self._looked = now  # before the commit: it would fill up a -wal that was cut
                if self._look()[0]:
                    raise LogGone(self._gone)
            with self._writing:
                self._notice_others()
                try:
                    self._write_out(statements, last, connection)
                finally:
                    self._files.on_write()
                self._files.on_commit()

        await self._connection.run(work)

    def _write_out(
        self, statements: Sequence[tuple[str, list[Any]]], last: int, connection: sqlite3.Connection
    ) -> None:
        try:
            _carry_out(statements, connection)
        except sqlite3.OperationalError:
            self._files.cut_unwritten()
            raise
        self._last_row.note(last)
        if self._files.wal_frames() >= MOVED:
            self._checkpoint("PASSIVE", connection)


def _carry_out(statements: Sequence[tuple[str, list[Any]]], connection: sqlite3.Connection) -> None:
    if len(statements) == 1:
        connection.execute(*statements[0])
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements:
            connection.execute(*statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back already
            connection.execute("ROLLBACK")
        raise


def _saved_name(path: Path) -> str:
    return HomeLayout(path.parent).saved_log.name


def _append(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows to a log that nobody has open."""
    uri = f"file:{quote(str(path))}?mode=rw"  # what is not there is not made
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        known = {
            name for (name,) in connection.execute("SELECT id FROM event ORDER BY seq DESC LIMIT ?", (GROUP,))
        }
        fresh = [
            row for row in rows if row.id not in known
        ]  # a commit that was broken off may have held some
        connection.execute("BEGIN IMMEDIATE")
        for statement in _placed(fresh, Head(*head_of(connection)))[1]:
            connection.execute(*statement)
        connection.execute("COMMIT")


def _fail(calls: Iterable[CommitCall], error: Exception) -> None:
    for call in calls:
        call.settle(error)


def _placed(rows: Sequence[Row], head: Head) -> tuple[list[Event], list[tuple[str, list[Any]]], Head]:
    """The rows as events after `head`, the statements that write them, and the new head."""
    seq, chain = head
    events = []
    statements = []
    for start in range(0, len(rows), STATEMENT):
        values: list[Any] = []
        for columns, sealed, data in rows[start : start + STATEMENT]:
            seq += 1
            chain = link(chain, seq, sealed)
            values += (seq, *columns, chain)
            events.append(Event._make((seq, *columns[:9], data)))
        count = min(STATEMENT, len(rows) - start)
        statements.append((f"INSERT INTO event VALUES {','.join([_VALUES] * count)}", values))
    statements += [(EMPTY, [row.columns[5]]) for row in rows if row.columns[4] == KIND]
    return events, statements, Head(seq, chain)


def _new_rows(
    rows: Sequence[Row], known: Mapping[str, tuple[Any, ...]], fresh: Mapping[str, Row]
) -> dict[str, Row]:
    """Those rows of one call that are not recorded yet; raises Conflict if an id means something else."""
    new: dict[str, Row] = {}
    for row in rows:
        if row.id in known:
            there = content(known[row.id][1:])
        elif earlier := fresh.get(row.id) or new.get(row.id):
            there = earlier.content
        else:
            new[row.id] = row
            continue
        if there != row.content:
            raise Conflict(
                f"the id {row.id} is taken by an event of other content; leave the id out for a new event"
            )
    return new
