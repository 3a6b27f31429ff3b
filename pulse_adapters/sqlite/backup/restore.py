"""Putting a home back from a backup: checked, prepared beside the stores, decided, exchanged."""

import asyncio
import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pulse_adapters.sqlite.aside import new_aside
from pulse_adapters.sqlite.backup.databases import (
    PresentLog,
    Salvaged,
    copy_under_wal,
    empty_redacted,
    examine,
    read_present_log,
    salvage,
)
from pulse_adapters.sqlite.backup.files import (
    PRIVATE,
    copy_file,
    demand_room,
    fact_of,
    folder_of,
    size_of,
    sync_all,
    write_synced,
)
from pulse_adapters.sqlite.backup.known_rows import last_backup
from pulse_adapters.sqlite.backup.manifest import Manifest, read_manifest
from pulse_adapters.sqlite.backup.saved_log import holds_rows
from pulse_adapters.sqlite.backup.swap import ADDED, anything_in, link_or_copy
from pulse_adapters.sqlite.checkpoints import read_checkpoints, read_host
from pulse_adapters.sqlite.connect import connect_readonly, is_orphaned_wal, refuse_damage
from pulse_adapters.sqlite.errors import is_of_values, translate_error
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.last_write import last_row_noted, last_row_of_any
from pulse_adapters.sqlite.wal import last_rowid
from pulse_adapters.workers.database_files import files_of, left_beside_link, names_beside
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.untrusted_paths import hand_over, open_folder, remove_tree
from pulse_core.app.backup import Progress, Restored
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import LogRestored
from pulse_core.ports.clock import Clock
from pulse_core.ports.stores import Objects

MARGIN = 8 << 20


class HomeRestore:
    """One restore of `home` from the directory `backup`. The caller holds the home's lock."""

    def __init__(
        self,
        home: HomeLayout,
        backup: Path,
        clock: Clock,
        objects: Objects,
        progress: Progress,
        anchored: Callable[[str], int],
    ) -> None:
        """Raises Damaged or NewerFormat if the backup must not be put back."""
        self.anchored = anchored
        self.home, self.backup, self.clock, self.objects = home, backup, clock, objects
        self.progress = progress
        self.manifest = checked_manifest(backup, progress)
        self.place, self.staging = Path(os.path.realpath(home.path)), home.restoring
        self.aside: Path | None = None
        self.notes: list[str] = []

    @contextmanager
    def prepared(self, keep_tail: bool) -> Iterator[Restored]:
        """All of it but the exchange; when this fails, nothing has changed but objects that were missing or altered."""
        try:
            with open_folder(self.place) as held:
                remove_tree(self.staging.name, held)
                os.mkdir(self.staging.name, PRIVATE, dir_fd=held)
            present = self._present()
            objects = (name for name in self.manifest.files if name.startswith("objects/"))
            missing = [name for name in objects if not self._is_whole(name)]
            self._demand_room(missing)
            self._stage()
            self._put_objects(missing)
            tail, log = Salvaged(), self.staging / "present" / "events.db"
            if keep_tail and log.exists():
                self.progress("keeping the rows after the backup …")
                tail = salvage(log, self.staging / "events.db", self.home.objects)
            restored = self._outcome(present, tail)
            self._record(restored)
            empty_redacted(self.staging / "events.db")
            examine(self.staging / "events.db", self.home.objects)
            yield restored
        except BaseException as error:
            shutil.rmtree(self.staging, ignore_errors=True)
            if self.aside:
                with suppress(OSError):
                    self.aside.rmdir()  # unless something was put there
            if isinstance(error, sqlite3.Error):
                raise translate_error(error, self.staging / "events.db") from error
            if isinstance(error, OSError):
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                words = f"{error.filename or self.home.path}: {error.strerror}"
                raise PulseError(
                    f"nothing was restored: {'there is no room left' if full else words}"
                ) from error
            raise

    def decide(self, restored: Restored) -> None:
        """All that was made is on disk and the owner's; then one file decides: from there on it can only be finished."""
        self._hand_over()
        sync_all(self.home.path)
        write_synced(self.home.restore_plan, json.dumps(restored._asdict()) + "\n")

    def _present(self) -> PresentLog:
        """The log that is there, looked at under another name, so that nothing beside it changes."""
        damage = ""
        try:
            refuse_damage(self.home.events)
        except Damaged as error:  # its -wal: SQLite itself would stop there in silence
            damage = str(error).partition(";")[0]
        present = self.staging / "present"
        present.mkdir(mode=PRIVATE)
        log = self.home.events
        database, wal, _ = files_of(log)
        copy, _, _ = names_beside(present / log.name)
        if self.home.saved_log.exists() and holds_rows(self.home.saved_log):
            link_or_copy(self.home.saved_log, copy)
            damage = ""
        else:
            if is_orphaned_wal(log):
                copy_under_wal(self.backup / "events.db", copy)
            elif log.exists():
                link_or_copy(database, copy)
            stray = left_beside_link(log)
            if rows := wal if wal.exists() else stray:
                link_or_copy(rows, names_beside(copy).wal)
        found = read_present_log(copy)
        if is_orphaned_wal(log):
            found = found._replace(seq=max(found.seq, last_rowid(wal)))
        if found.host and found.host != self.manifest.host:
            raise PulseError(
                f"{self.backup} is of another home ({self.manifest.home} on {self.manifest.machine}); to have it"
                f" here, give a new --home, or move {self.home.events} away first"
            )
        return found._replace(fault=damage or found.fault)

    def _is_whole(self, name: str) -> bool:
        try:
            fact = self.manifest.files[name]
            return fact_of(self.place, name, fact.bytes).sha256 == fact.sha256
        except OSError:
            return False

    def _demand_room(self, missing: list[str]) -> None:
        log = self.manifest.files["events.db"].bytes
        tail = max(0, sum(map(size_of, files_of(self.home.events)[:2])) - log)
        files = [*missing, *(name for name in self.manifest.files if not name.startswith("objects/"))]
        needed = sum(self.manifest.files[name].bytes for name in files) + tail + MARGIN
        demand_room(self.home.path, needed, len(files), "the restore")

    def _stage(self) -> None:
        """Copies of what is to take the place of something, or of nothing, at the end."""
        self.progress("copying …")
        self._copy("events.db")
        if self.home.events.is_symlink():
            words = f"events.db was a link to {files_of(self.home.events).database}, which stays as it is"
            self.notes.append(f"{words}; the log lies in the home itself now")
        was_there = os.path.lexists(self.home.vitals)
        if not is_usable(self.home.vitals) and "vitals.db" in self.manifest.files:
            self._copy("vitals.db")
            if not self._begin_samples(self.staging / "vitals.db"):
                (self.staging / "vitals.db").unlink()
                self.notes.append("the backup's vitals.db can't be used, and is left out")
            elif was_there:
                self.notes.append("vitals.db could not be used and is the backup's now")
        for name in ADDED:
            if not os.path.lexists(self.home.path / name):
                for part in self.manifest.files:
                    if part == name or part.startswith(f"{name}/"):
                        self._copy(part)
                    if part == f"{name}/.git/HEAD":
                        self._make_refs(f"{self.staging.name}/{name}/.git/refs")
            elif name in self.manifest.files and not self._is_whole(name):
                self.notes.append(
                    f"{name} is left as it is; the backup's is another one: {self.backup / name}"
                )

        if not any(log.exists() for log in self.home.shadow_logs):
            for log in self.home.shadow_logs:
                if log.name in self.manifest.files:
                    self._copy(log.name)

    def _begin_samples(self, vitals: Path) -> bool:
        """Have the next samples get ids that none had before: an id in the log must not come to mean another sample.

        False if that file can't be used.
        """
        now = self.clock.now()
        try:
            with closing(sqlite3.connect(vitals)) as connection:
                connection.execute("INSERT INTO sample VALUES (?, 'restored', ?, ?, ?, '{}')", (now.at, *now))
                connection.commit()
        except sqlite3.Error as error:
            if not is_of_values(error):
                raise
            return False
        return True

    def _copy(self, name: str) -> None:
        fact, target = self.manifest.files[name], f"{self.staging.name}/{name}"
        with folder_of(self.place, target, make=True) as (here, last):
            if fact.link is not None:
                os.symlink(fact.link, last, dir_fd=here)
                return
            with folder_of(self.backup, name) as (there, _):
                copied = copy_file(open_plain(last, within=there), last, within=here, most=fact.bytes)
        if copied.sha256 != fact.sha256:
            raise Damaged(f"{self.backup / name} changes while it is read; take another backup")

    def _make_refs(self, folder: str) -> None:
        """Git takes a repository without this folder for none, and a backup names no empty one: all refs may be packed."""
        with folder_of(self.place, f"{folder}/.", make=True):
            pass

    def _put_objects(self, missing: list[str]) -> None:
        """Objects are named by what is in them, so a whole one is right wherever it comes from."""
        for name in missing:
            self._copy(name)
            with (
                folder_of(self.place, f"{self.staging.name}/{name}") as (staged, last),
                folder_of(self.place, name, make=True) as (there, _),
            ):
                with suppress(FileNotFoundError):
                    os.stat(last, dir_fd=there, follow_symlinks=False)
                    with folder_of(self._aside(), name, make=True) as (aside, _):
                        os.rename(last, last, src_dir_fd=there, dst_dir_fd=aside)
                os.rename(last, last, src_dir_fd=staged, dst_dir_fd=there)

    def _outcome(self, present: PresentLog, tail: Salvaged) -> Restored:
        """What is to be said; how many rows are lost is told by those alone that know this log, and not one before it."""
        ours, last = ("", self.manifest.host), last_backup(self.home)
        heads = [kept.head.seq for kept in read_checkpoints(self.home.state).values()]
        noted = last_row_noted if self.home.events.exists() else last_row_of_any
        known = max(
            present.seq,
            noted(self.home.events) if read_host(self.home.state) in ours else 0,
            last.row[0] if last and last.host in ours else 0,
            *(heads if read_host(self.home.state) in ours else ()),
            self.anchored(self.manifest.host),
        )
        return Restored(
            source=str(self.backup),
            made_at=self.manifest.made_at,
            rows=self.manifest.seq,
            salvaged=tail.rows,
            lost=max(0, known - self.manifest.seq - tail.rows),
            fault=tail.fault or present.fault,
            kept_at=str(self._aside()) if self.aside or anything_in(self.home) else "",
            notes=tuple(self.notes),
        )

    def _record(self, restored: Restored) -> None:
        fields = {name: getattr(restored, name) for name in LogRestored.model_fields}

        async def append() -> None:
            path = self.staging / "events.db"
            async with SqliteEventLog.open(path, clock=self.clock, objects=self.objects) as log:
                await log.append(Draft(LogRestored(**fields)))

        asyncio.run(append())

    def _aside(self) -> Path:
        if self.aside is None:
            self.aside = new_aside(self.home)
        return self.aside

    def _hand_over(self) -> None:
        """All that was made belongs to the owner of the home, also if root did it."""
        if os.geteuid() == 0 != self.home.path.stat().st_uid:
            for tree in (self.staging, self.home.objects, self.home.damaged):
                for directory, names, files in os.walk(tree):
                    for name in ("", *names, *files):
                        hand_over(Path(directory, name), self.home.path)


def checked_manifest(backup: Path, progress: Progress) -> Manifest:
    """What the backup says of itself, once all of it is found to be true. Raises Damaged, NewerFormat."""
    progress("checking the backup …")
    manifest = read_manifest(backup)
    for name, fact in manifest.files.items():
        try:
            found = fact_of(backup, name, fact.bytes)
        except OSError as error:
            raise Damaged(f"{backup / name} can't be read ({error.strerror}); take another backup") from error
        if (found.sha256, found.link) != (fact.sha256, fact.link):
            raise Damaged(f"{backup / name} is not what was backed up; take another backup")
    log = examine(backup / "events.db", backup / "objects")
    if (log.seq, log.chain) != manifest.head or bool(log.accepted) != bool(manifest.accepted):
        raise Damaged(f"the log in {backup} is another one than its manifest says; take another backup")
    return manifest


def is_usable(vitals: Path) -> bool:
    """Whether there are vitals that can be read as a whole."""
    if not vitals.exists():
        return False
    try:
        with closing(connect_readonly(vitals)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False
