"""The backups of a home on this machine."""

import errno
import os
import re
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pulse_adapters.sqlite.backup.databases import copy_database, examine
from pulse_adapters.sqlite.backup.files import (
    PRIVATE,
    checked_destination,
    copy_file,
    copy_tree,
    demand_room,
    fact_of,
    size_of,
    sync_all,
    under_construction,
)
from pulse_adapters.sqlite.backup.known_rows import (
    another_home,
    compare_with_log,
    last_backup,
    last_checkpoint_row,
    remember_backup,
)
from pulse_adapters.sqlite.backup.manifest import LARGEST, NAME, TREES, FileFact, Manifest, read_manifest
from pulse_adapters.sqlite.backup.restore import HomeRestore
from pulse_adapters.sqlite.backup.swap import finish_decided
from pulse_adapters.sqlite.connect import connect_readonly, refuse_damage
from pulse_adapters.sqlite.errors import code, translate_error
from pulse_adapters.sqlite.last_write import last_row_noted
from pulse_adapters.sqlite.named_objects import named_by_ticks
from pulse_adapters.sqlite.open_log import refuse_lost_end
from pulse_adapters.sqlite.payloads import MARK, is_object_name, object_path, referenced_object
from pulse_adapters.workers.database_files import files_of
from pulse_adapters.workers.file_systems import answer_in_time
from pulse_adapters.workers.plain_file import open_plain, replace_plain
from pulse_adapters.workers.users import expand_home
from pulse_core import __version__
from pulse_core.app.backup import Backup, Progress, Restored
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, NoHome, PulseError
from pulse_core.model.text import format_size
from pulse_core.ports.clock import Clock
from pulse_core.ports.stores import Objects

MARGIN = 1 << 20
_HELD = re.compile(r"/proc/self/fd/\d+")
"""How a folder is named that is held by its descriptor."""
MOST_PLAIN = 64 << 20
"""Bytes of the settings, and of what a shadow did."""


@dataclass(frozen=True)
class HomeBackups:
    """Backups of one home, and restores from them.

    lock: makes the home if there is none, and holds it for the caller alone; raises HomeBusy while somebody else does.
    anchored: the last row of this home's id that is known from outside of the home; 0 for none. engine_fault: what is wrong
    with the repository of the user's rules, empty if nothing is, or there is to be none. patience_s: seconds within
    which the file system of each part has told how large that is.
    """

    home: HomeLayout
    clock: Clock
    objects: Objects
    lock: Callable[[], AbstractContextManager[object]]
    anchored: Callable[[str], int] = lambda host: 0
    engine_fault: Callable[[], str] = lambda: ""
    patience_s: float = 60.0

    def make(self, destination: str, progress: Progress) -> Backup:
        """Copy the home, read the copy back, and only then give it its name; what fails leaves nothing.

        The home may be in use: it is only read.
        """
        home = self.home
        refuse_damage(home.events)
        if not home.events.exists():
            raise NoHome(str(home.path))
        path = checked_destination(destination, home.path)
        parts = [*files_of(home.events)[:2], *files_of(home.vitals)[:2], home.objects, home.config]
        parts += [home.path / tree for tree in TREES]
        needed = sum(answer_in_time(str(part), partial(size_of, part), self.patience_s) for part in parts)
        files = sum(len(names) for _, _, names in os.walk(home.objects)) + 300
        demand_room(path.parent, needed + needed // 20 + MARGIN, files, "the backup")
        try:
            with under_construction(path) as work:
                writer = BackupWriter(home, work, progress)
                manifest = writer.write()
        except Damaged as error:
            raise Damaged(_HELD.sub(str(path), str(error))) from error
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            room = f"there is no room left; up to {format_size(needed)} may be needed"
            words = room if full else f"{_HELD.sub(str(path), str(error.filename or path))}: {error.strerror}"
            raise PulseError(f"no backup was made at {path}: {words}") from error
        remember_backup(home, path, manifest)
        return Backup(
            str(path),
            manifest.made_at,
            manifest.seq,
            manifest.chain,
            manifest.host,
            len(manifest.files),
            sum(fact.bytes for fact in manifest.files.values()),
            manifest.accepted,
            writer.left_out,
            self.engine_fault(),
        )

    def check(self, source: str, progress: Progress) -> HomeRestore:
        """Read everything in the backup, its log row by row."""
        backup = Path(os.path.realpath(expand_home(source)))
        return HomeRestore(self.home, backup, self.clock, self.objects, progress, self.anchored)

    def restore(
        self, source: str, keep_tail: bool, end_shadow: Callable[[], str], progress: Progress
    ) -> tuple[Restored, Restored | None]:
        """Put the home back; what came of it, and of an earlier restore that had to be finished first.

        A restore has one moment of decision. Before it, everything is prepared beside the stores and any failure leaves
        the home as it was; after it, each step can be repeated from wherever it was broken off, and reader and writer
        refuse the log until the last one is done. end_shadow: a shadow would go on reading the log that is set aside;
        it is ended before the decision, and what is returned is said. Raises PulseError; HomeBusy if the daemon runs.
        """
        found = self.check(source, progress)
        with self.lock():
            earlier = finish_decided(self.home)
            with found.prepared(keep_tail) as prepared:
                note = end_shadow()
                restored = prepared._replace(notes=(*prepared.notes, note)) if note else prepared
                found.decide(restored)
            finish_decided(self.home)
        return restored, earlier


class BackupWriter:
    """One backup of `home`, made in the directory `work`."""

    def __init__(self, home: HomeLayout, work: Path, progress: Progress) -> None:
        self.home, self.work, self.progress = home, work, progress
        self.files: dict[str, FileFact] = {}
        self.left_out: list[str] = []

    def write(self) -> Manifest:
        """Copy all of it and have it on disk; raises Damaged if the log is not sound."""
        if words := another_home(self.home):
            raise Damaged(f"{words}; see: upulse doctor")
        # Before the copy: what was there then must be in it.
        known, noted = last_checkpoint_row(self.home), last_row_noted(self.home.events)
        if last := last_backup(self.home):  # what it had must be there still
            who = f"the backup in {last.path}"
            agrees, words = compare_with_log(self.home, last.row, who, last.made_at, last.host)
            if not agrees:
                raise Damaged(f"{self.home.events}: {words}; see: upulse doctor")
        self._copy_databases()
        self._copy_objects()
        self._copy_plain()
        self.progress("writing it to disk …")
        sync_all(self.work)
        self.progress("reading it back …")
        log = examine(self.work / "events.db", self.work / "objects", known)
        refuse_lost_end(self.home.events, log.seq, noted)
        for name, fact in self.files.items():
            found = fact_of(self.work, name)
            if (found.sha256, found.link) != (fact.sha256, fact.link):
                raise Damaged(f"{name} was read back otherwise than it was written; don't trust this disk")
        manifest = Manifest(
            version=__version__,
            made_at=time.time_ns() // 1000,
            machine=socket.gethostname(),
            home=str(self.home.path),
            host=log.host,
            log_format=log.format,
            seq=log.seq,
            chain=log.chain.hex(),
            accepted=log.accepted.replace(f"{self.work}/", ""),
            files=self.files,
        )
        text = manifest.text()
        if len(text) > LARGEST:
            raise PulseError(
                f"{len(self.files):,} files are too many for a backup; move what is no code out of staging/"
            )
        replace_plain(self.work / NAME, text.encode())
        sync_all(self.work)
        read_manifest(self.work)  # none is made that can't be put back
        return manifest

    def _copy_databases(self) -> None:
        refuse_damage(self.home.events)
        for source in (self.home.vitals, self.home.events):  # ticks never name what the log does not have
            target = self.work / source.name
            self.progress(f"copying {source.name} …")
            try:
                target.touch(mode=0o600)
                copy_database(source, target)
                self.files[source.name] = fact_of(self.work, target.name)
            except sqlite3.Error as error:
                if source == self.home.events:
                    raise _not_copied(error, source, self.work) from error
                target.unlink(missing_ok=True)  # vitals are worth less than the backup

    def _copy_objects(self) -> None:
        """Those that the copied rows and ticks name; what of them is missing is found when the log is examined."""
        self.progress("copying objects …")
        (self.work / "objects").mkdir(mode=PRIVATE)
        try:
            named = set(_named_by_rows(self.work / "events.db"))
        except sqlite3.Error as error:
            raise _not_copied(error, self.home.events, self.work) from error
        for name in sorted(named.union(named_by_ticks(self.work / "vitals.db"))):
            source, target = object_path(self.home.objects, name), object_path(self.work / "objects", name)
            target.parent.mkdir(mode=PRIVATE, exist_ok=True)
            with suppress(FileNotFoundError):
                fact = copy_file(open_plain(source), target)
                if fact.sha256 == name:
                    self.files[target.relative_to(self.work).as_posix()] = fact
                else:
                    target.unlink()
                    if name not in named:
                        self.left_out.append(target.relative_to(self.work).as_posix())

    def _copy_plain(self) -> None:
        for name in (self.home.config.name, *(log.name for log in self.home.shadow_logs)):
            with suppress(FileNotFoundError):  # a shadow may begin a new file just now
                original = open_plain(self.home.path / name, follow=True)
                self.files[name] = copy_file(original, self.work / name, most=MOST_PLAIN)
        for tree in TREES:
            if (self.home.path / tree).is_dir():
                self.files |= dict(copy_tree(self.home.path, self.work, tree, self.left_out))


def _not_copied(error: sqlite3.Error, source: Path, work: Path) -> Exception:
    """The source is only read, so FULL means the copy's disk; what else a full disk causes may come from either end."""
    if code(error) == sqlite3.SQLITE_FULL or shutil.disk_usage(work).free < MARGIN:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(work))
    return translate_error(error, source)


def _named_by_rows(events: Path) -> Iterator[str]:
    with closing(connect_readonly(events)) as connection:
        rows = connection.execute(f"SELECT data FROM event WHERE data GLOB '{MARK}*'")
        for (data,) in rows:
            # An altered reference is found by the examination.
            with suppress(ValueError, LookupError, TypeError):
                if is_object_name(name := referenced_object(data)):
                    yield name
