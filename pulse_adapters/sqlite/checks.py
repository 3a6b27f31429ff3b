"""What the doctor asks of the stores: is all there that was written?"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.backup.known_rows import (
    NEW_BEGINNINGS,
    another_home,
    compare_with_log,
    last_backup,
    last_backup_fault,
    last_checkpoint_row,
)
from pulse_adapters.sqlite.backup.saved_log import put_back
from pulse_adapters.sqlite.backup.swap import finish_decided
from pulse_adapters.sqlite.checkpoints import read_checkpoints, read_host
from pulse_adapters.sqlite.connect import (
    connect_readonly,
    is_open_elsewhere,
    lost_frames,
    refuse_altered_wal,
    refuse_damage,
    refuse_missing,
)
from pulse_adapters.sqlite.errors import is_corrupt
from pulse_adapters.sqlite.event_reader import translate_read_error
from pulse_adapters.sqlite.last_write import last_row_noted
from pulse_adapters.sqlite.open_log import (
    TAIL,
    Opening,
    check_tail,
    open_writer,
    refuse_lost_end,
    refuse_new_log,
)
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.verify import INDEX_FAULT, verify
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.untrusted_paths import hand_over
from pulse_core.app.doctor import DAMAGE_REMEDY, FAIL, OK, WARN, Finding
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Event
from pulse_core.model.text import are, count

WAL_RESET_FIXED = (3, 51, 3)
OLDEST_SQLITE = (3, 38, 0)
"""STRICT tables came with 3.37, JSON built in with 3.38."""
SMALL = 100_000
"""Rows up to which the log is read as a whole: about half a second."""

OLD_BACKUP_US = 7 * 86_400 * 1_000_000


@dataclass(frozen=True)
class StoreChecks:
    """Checks of the stores of a home.

    deep: read the whole log, however long it is; is_held: whether somebody holds the home; lock: holds it for the
    caller, waiting at most so many seconds; spell: a time (UTC microseconds) for a person, with its date or without;
    newest: the newest event of a kind, None also if the log can't be read.
    """

    home: HomeLayout
    deep: bool
    is_held: Callable[[], bool]
    lock: Callable[[float], AbstractContextManager[object]]
    spell: Callable[[int, bool], str]
    newest: Callable[[str], Event | None]

    def sqlite(self) -> Iterator[Finding]:
        """Its version, and the one bug that matters."""
        found = sqlite3.sqlite_version
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            words = f"SQLite {found} is older than {'.'.join(map(str, OLDEST_SQLITE))}"
            yield Finding("sqlite", FAIL, words, "use a Python with a newer SQLite")
        elif sqlite3.sqlite_version_info < WAL_RESET_FIXED:
            words = f"SQLite {found}, without the fix of the WAL-reset bug (3.51.3); Pulse is safe all the same: only"
            rest = "whoever holds the home's lock writes and checkpoints, all others open read-only"
            yield Finding("sqlite", OK, f"{words} {rest}")
        else:
            yield Finding("sqlite", OK, f"SQLite {found}, with the fix of the WAL-reset bug")

    def reserve(self) -> Iterator[Finding]:
        """The space that is given up when the disk is full."""
        path = self.home.reserve
        if path.exists() and path.stat().st_blocks * 512 >= SIZE:
            yield Finding("reserve", OK, f"{SIZE >> 20} MiB are held back for a full disk")
            return

        def repair() -> str:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            hand_over(path.parent, self.home.path)
            if not Reserve(path).make():
                raise PulseError(f"there is no room for it, or {path.parent} takes no file")
            hand_over(path, self.home.path)
            return f"{SIZE >> 20} MiB are held back again"

        yield Finding("reserve", WARN, "nothing is held back for a full disk: it was given up, or never made",
                      "the next start of the daemon makes it, or upulse doctor --repair", repair)  # fmt: skip

    def restore(self) -> Iterator[Finding]:
        """Whether a restore was broken off."""
        if self.home.restore_plan.exists():
            words = (
                "a restore was broken off in its last step, and nobody may use the home until it is finished"
            )
            remedy = "upulse doctor --repair, or upulse restore again"
            yield Finding("restore", FAIL, words, remedy, self._finish_restore)
        elif self.home.restoring.exists() and not self.is_held():
            words = "a restore was broken off before it changed anything; do it again if it is wanted"
            yield Finding("restore", WARN, words)

    def _finish_restore(self) -> str:
        with self.lock(10.0):
            restored = finish_decided(self.home)
        return f"the restore from {restored.source} is finished" if restored else "it was finished already"

    def log(self) -> Iterator[Finding]:
        """Whether the log can be opened, and its last rows, or all of them, are what was written."""
        home, is_accepted = self.home, False
        try:
            refuse_missing(home.events)
        except Damaged as damage:
            yield Finding(
                "log", FAIL, str(damage), "upulse doctor --repair, while no daemon runs", self._put_back
            )
            return
        try:
            refuse_new_log(home.events)
        except Damaged as damage:
            yield Finding("log", FAIL, str(damage), DAMAGE_REMEDY)
            return
        if not home.events.exists():
            remedy = "upulse restore a backup; a start would begin a new log"
            yield Finding("log", FAIL, f"there is no {home.events}", remedy)
            return
        try:
            refuse_damage(home.events)
            refuse_altered_wal(home.events)
            if words := another_home(home):
                remedy = (
                    f"put this home's own log back; or move {home.events} away, then upulse restore a backup"
                )
                yield Finding("log", FAIL, words, remedy)
                return
            rows, words = self._read()
        except Damaged as damage:
            yield Finding("log", FAIL, str(damage), DAMAGE_REMEDY)
            return
        with suppress(PulseError):
            is_accepted = bool(words and examine(home.events, home.objects).accepted)
        if words.startswith(INDEX_FAULT):
            remedy = "while the daemon is down: upulse doctor --repair"
            repair = None if self.is_held() else self._reindex
            yield Finding("log", FAIL, words, remedy, repair)
        elif is_accepted:
            yield Finding("log", WARN, f"{words}; this damage was accepted, and all after that is good")
        elif words:
            good = f"; {count(rows, 'row')} before it {are(rows)} good" if rows else ""
            yield Finding("log", FAIL, f"{words}{good}", DAMAGE_REMEDY)
        else:
            yield from self._sound(rows)

    def _reindex(self) -> str:
        with self.lock(0.0), closing(open_writer(self.home.events, Opening())[0]) as connection:
            connection.execute("REINDEX")
        return "the indexes are made anew from the rows"

    def _put_back(self) -> str:
        with self.lock(10.0):
            return put_back(self.home)

    def _read(self) -> tuple[int, str]:
        """How many rows are good, as far as they are read, and what is wrong with the next."""
        home = self.home
        try:
            noted = last_row_noted(home.events)
            with closing(connect_readonly(home.events)) as connection:
                head = connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
                if not self.deep and head > SMALL:
                    check_tail(connection, home.events, head)
                    refuse_lost_end(home.events, head, noted)
                    return head, ""
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise translate_read_error(error, home.events) from error
            return 0, f"the log can't be read: {error}"
        verdict = verify(home.events, home.objects, expect=last_checkpoint_row(home))
        return verdict.rows, verdict.fault

    def _sound(self, rows: int) -> Iterator[Finding]:
        whole = self.deep or rows <= SMALL
        is_open = is_open_elsewhere(files_of(self.home.events).shm)
        wal = "the daemon has it open" if is_open else "its -wal is whole"
        if whole:
            yield Finding("log", OK, f"all {rows} rows are what was written; {wal}")
            return
        yield Finding("log", OK, f"the last {TAIL} of {rows} rows are what was written; {wal}",
                      "upulse doctor --deep reads all of them")  # fmt: skip
        payloads = lost_payloads(self.home.events, self.home.objects)
        lost = [f"the payload of row {seq} ({kind}): {why}" for seq, kind, why in payloads]
        if lost:
            yield Finding("objects", FAIL, f"{len(lost)} large payloads are lost; {lost[0]}", DAMAGE_REMEDY)
        else:
            yield Finding("objects", OK, "every object that the log names is there")

    def verified(self) -> Iterator[Finding]:
        """When the whole log was last read by the daemon, and what it found."""
        name = "last check"
        if (last := self.newest("log-verified")) is None:
            words = "the daemon has not read the whole log yet"
            yield Finding(name, WARN, words, "it does, soon after each start")
        elif not (data := json.loads(last.data)):
            words = f"{self.spell(last.at, False)}: what it found was redacted"
            yield Finding(name, WARN, words, "the daemon reads it again soon after each start")
        elif fault := data.get("fault"):
            begun = any(map(self.newest, NEW_BEGINNINGS))  # what was accepted is found again each time
            words = f"{self.spell(last.at, False)}: {fault}"
            yield Finding(name, WARN if begun else FAIL, words, "" if begun else DAMAGE_REMEDY)
        else:
            yield Finding(name, OK, f"{self.spell(last.at, True)}: all {data.get('rows')} rows were good")

    def checkpoints(self) -> Iterator[Finding]:
        """Whether the log has the rows that state.db knows; a cache that can't be read is only a nuisance."""
        home = self.home
        found = read_checkpoints(home.state)
        if not home.state.exists() or (not found and read_host(home.state)):
            yield Finding("state", OK, "no checkpoint yet: the next start reads the whole log")
            return
        if not found:
            yield Finding("state", WARN, "state.db can't be read; it is a cache, and the next start reads the whole log",
                          "delete it while the daemon is down, or upulse doctor --repair",
                          self._forget_checkpoints if not self.is_held() else None)  # fmt: skip
            return
        head = max(checkpoint.head for checkpoint in found.values())
        agrees, words = compare_with_log(home, head, "state.db", host=read_host(home.state))
        words = words or f"checkpoints stand at row {head.seq} of this log"
        yield Finding("state", OK if agrees else FAIL, words, "" if agrees else DAMAGE_REMEDY)

    def _forget_checkpoints(self) -> str:
        with self.lock(0.0):
            for path in self.home.path.glob(f"{self.home.state.name}*"):
                path.unlink()
        return "state.db is deleted; the next start makes it anew"

    def backup(self) -> Iterator[Finding]:
        """Whether there is a recent backup, and the log still has what was in it."""
        last, often = last_backup(self.home), "upulse backup DIRECTORY, every day"
        if last is None:
            words = last_backup_fault(self.home) or "there was no backup of this home yet"
            yield Finding("backup", WARN, words, often)
            return
        when = self.spell(last.made_at, True)
        agrees, words = compare_with_log(
            self.home, last.row, f"the backup in {last.path}", last.made_at, last.host
        )
        if not agrees:
            yield Finding("backup", FAIL, words, DAMAGE_REMEDY)
        elif not Path(last.path).exists():
            yield Finding("backup", WARN, f"the last one, of {when}, is not in {last.path} now",
                          "make sure that it is somewhere: upulse backup DIRECTORY")  # fmt: skip
        else:
            is_old = time.time_ns() // 1000 - last.made_at > OLD_BACKUP_US
            words = words or f"the last one was made {when}: {last.path}"
            yield Finding("backup", WARN if is_old else OK, words, often if is_old else "")

    def vitals(self) -> Iterator[Finding]:
        """Whether samples and ticks can be read; they may be lost."""
        path = self.home.vitals
        if not path.exists():
            yield Finding("vitals", OK, "none yet")
            return
        if lost := lost_frames(path):
            yield Finding("vitals", WARN, lost, "nothing: the next start goes on with what is left")
            return
        try:
            with closing(connect_readonly(path)) as connection:
                samples, ticks = connection.execute(
                    "SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM tick)"
                ).fetchone()
            yield Finding(
                "vitals",
                OK,
                f"{count(samples, 'sample')} and {count(ticks, 'tick')}, {path.stat().st_size >> 20} MiB",
            )
        except sqlite3.Error as error:
            yield Finding("vitals", WARN, f"{path} can't be read: {error}",
                          "nothing: the next start sets it aside and begins a new one")  # fmt: skip

    def aside(self) -> Iterator[Finding]:
        """Copies of what was damaged: they keep objects from being removed."""
        kept = sorted(path.name for path in self.home.damaged.glob("*"))
        if kept:
            yield Finding("damaged", WARN, f"{self.home.damaged} keeps what was set aside ({', '.join(kept)}), and while it"
                          " does no object is removed", "delete them once nobody needs them any more")  # fmt: skip
