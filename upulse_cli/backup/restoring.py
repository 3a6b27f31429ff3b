"""Putting a home back from a backup: checked, prepared beside the stores, decided, exchanged."""

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.objects import FileObjects
from pulse_adapters.sqlite.backup import examine
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.connect import refuse_damage
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.faults import translated
from pulse_adapters.sqlite.salvage import Present, Salvaged, look_at, salvage
from pulse_core import __version__
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import LogRestored
from upulse_cli.backup.checking import sound
from upulse_cli.backup.files import PRIVATE, copy_file, fact_of, size_of, sync_all
from upulse_cli.backup.last import last_backup
from upulse_cli.backup.making import Told
from upulse_cli.backup.manifest import Manifest
from upulse_cli.backup.old_vitals import is_usable, mark
from upulse_cli.backup.place import demand_room, empty
from upulse_cli.backup.swap import ADDED, anything_in, decide, finish, link_or_copy, new_aside, staging
from upulse_cli.engine import shadow
from upulse_cli.engine.diary import FILES as DIARY

MARGIN = 8 << 20
WAIT = 10.0
"""Seconds: a daemon that refuses to start, and is started again and again, holds the home for moments."""

Outcome = Mapping[str, Any]
"""What came of it: `source`, `made_at`, `rows` of the backup, `salvaged`, `lost`, `fault`, `kept_at`, `notes`."""


def restore(
    home: Home, source: str, keep_tail: bool, told: Told = lambda words: None
) -> tuple[Outcome, Outcome | None]:
    """Put the home back; what came of it, and of an earlier restore that had to be finished first.

    Raises PulseError, and then the home is as it was. The daemon must not run (HomeBusy).
    """
    backup = Path(os.path.realpath(os.path.expanduser(source)))
    manifest = sound(backup, told)
    home.create()
    with HomeLock(home.lock, __version__, wait=WAIT):
        earlier = finished(home)
        return Restoring(home, backup, manifest, told).whole(keep_tail), earlier


def finished(home: Home) -> Outcome | None:
    """Finish a restore that was decided; raises PulseError if that can't be done now."""
    try:
        return finish(home)
    except OSError as error:
        raise PulseError(
            f"a restore is decided and can't be finished: {error.filename}: {error.strerror}; mend that, then again:"
            " upulse doctor --repair"
        ) from error


class Restoring:
    """One restore of `home` from the directory `backup`. The caller holds the home's lock."""

    def __init__(self, home: Home, backup: Path, manifest: Manifest, told: Told) -> None:
        self.home, self.backup, self.manifest, self.told = home, backup, manifest, told
        self.staging = staging(home)
        self.aside: Path | None = None
        self.notes: list[str] = []

    def whole(self, keep_tail: bool) -> Outcome:
        """All of it; raises PulseError, and then nothing has changed but objects that were missing or altered."""
        with self._prepared():
            present = self._present()
            missing = list(self._missing_objects())
            self._demand_room(missing)
            self._stage()
            self._put_objects(missing)
            tail = self._tail() if keep_tail else Salvaged()
            outcome = self._outcome(present, tail)
            self._record(outcome)
            examine(self.staging / "events.db", self.home.objects)
            self._end_shadow()
            self._hand_over()
            sync_all(self.home.path)
            decide(self.home, outcome)
        finished(self.home)
        return outcome

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """An empty directory to prepare in, which goes if that fails; whatever fails is put into words."""
        self.staging.mkdir(mode=PRIVATE, exist_ok=True)
        empty(self.staging)
        try:
            yield
        except sqlite3.Error as error:
            self._forget()
            raise translated(error, self.staging / "events.db") from error
        except OSError as error:
            self._forget()
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            words = (
                "there is no room left" if full else f"{error.filename or self.home.path}: {error.strerror}"
            )
            raise PulseError(f"nothing was restored: {words}") from error
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        if self.aside:
            with suppress(OSError):
                self.aside.rmdir()  # unless something was put there

    def _present(self) -> Present:
        """The log that is there, looked at under another name, so that nothing beside it changes."""
        damage = ""
        try:
            if self.home.events.exists():
                refuse_damage(self.home.events)
        except Damaged as error:  # its -wal: SQLite itself would stop there in silence
            damage = str(error).partition(";")[0]
        present = self.staging / "present"
        present.mkdir(mode=PRIVATE)
        for name in (self.home.events.name, f"{self.home.events.name}-wal"):
            if (self.home.path / name).exists():
                link_or_copy(self.home.path / name, present / name)
        found = look_at(present / self.home.events.name)
        if found.host and found.host != self.manifest.host:
            raise PulseError(
                f"{self.backup} is of another home ({self.manifest.home} on {self.manifest.machine}); to have it"
                f" here, give a new --home, or move {self.home.events} away first"
            )
        return found._replace(fault=damage or found.fault)

    def _missing_objects(self) -> Iterator[str]:
        for name in self.manifest.files:
            if name.startswith("objects/") and not self._is_whole(name):
                yield name

    def _is_whole(self, name: str) -> bool:
        try:
            return fact_of(self.home.path / name).sha256 == self.manifest.files[name].sha256
        except OSError:
            return False

    def _demand_room(self, missing: list[str]) -> None:
        log = self.manifest.files["events.db"].bytes
        tail = max(0, size_of(self.home.events) + size_of(self.home.path / "events.db-wal") - log)
        files = [*missing, *(name for name in self.manifest.files if not name.startswith("objects/"))]
        needed = sum(self.manifest.files[name].bytes for name in files) + tail + MARGIN
        demand_room(self.home.path, needed, len(files), "the restore")

    def _stage(self) -> None:
        """Copies of what is to take the place of something, or of nothing, at the end."""
        self.told("copying …")
        self._copy("events.db")
        if not is_usable(self.home.vitals) and "vitals.db" in self.manifest.files:
            self._copy("vitals.db")
            mark(self.staging / "vitals.db")
            self.notes.append("vitals.db could not be used and is the backup's now")
        for name in ADDED:
            if not (self.home.path / name).exists():
                for part in self.manifest.files:
                    if part == name or part.startswith(f"{name}/"):
                        self._copy(part)
            elif name in self.manifest.files and not self._is_whole(name):
                self.notes.append(
                    f"{name} is left as it is; the backup's is another one: {self.backup / name}"
                )

        if not any((self.home.path / name).exists() for name in DIARY):
            for name in filter(self.manifest.files.__contains__, DIARY):
                self._copy(name)

    def _copy(self, name: str) -> None:
        target, fact = self.staging / name, self.manifest.files[name]
        for directory in reversed(target.relative_to(self.staging).parents[:-1]):
            (self.staging / directory).mkdir(mode=PRIVATE, exist_ok=True)
        if fact.link is not None:
            target.symlink_to(fact.link)
        elif copy_file(self.backup / name, target).sha256 != fact.sha256:
            raise Damaged(f"{self.backup / name} changes while it is read; take another backup")

    def _put_objects(self, missing: list[str]) -> None:
        """Objects are named by what is in them, so a whole one is right wherever it comes from."""
        for name in missing:
            target = self.home.path / name
            target.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self._copy(name)
            if os.path.lexists(target):
                altered = self._aside() / name
                altered.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
                os.rename(target, altered)
            os.rename(self.staging / name, target)

    def _tail(self) -> Salvaged:
        present = self.staging / "present" / "events.db"
        if not present.exists():
            return Salvaged()
        self.told("keeping the rows after the backup …")
        return salvage(present, self.staging / "events.db", self.home.objects)

    def _outcome(self, present: Present, tail: Salvaged) -> Outcome:
        heads = [checkpoint.head.seq for checkpoint in read_checkpoints(self.home.state).values()]
        last = last_backup(self.home)
        known = max(present.seq, last.seq if last else 0, *heads, 0)
        return {
            "source": str(self.backup),
            "made_at": self.manifest.made_at,
            "rows": self.manifest.seq,
            "salvaged": tail.rows,
            "lost": max(0, known - self.manifest.seq - tail.rows),
            "fault": tail.fault or present.fault,
            "kept_at": str(self._aside()) if self.aside or anything_in(self.home) else "",
            "notes": self.notes,
        }

    def _record(self, outcome: Outcome) -> None:
        fields = {name: outcome[name] for name in LogRestored.model_fields}
        asyncio.run(_append(self.staging / "events.db", self.home, Draft(LogRestored(**fields))))

    def _end_shadow(self) -> None:
        """It would go on reading the log that is set aside, for ever."""
        if found := shadow.running(self.home):
            shadow.end(found)
            self.notes.append(
                f"the shadow (process {found.pid}) was ended, since it followed the log that was there; begin another"
                " one with: upulse shadow start"
            )

    def _aside(self) -> Path:
        if self.aside is None:
            self.aside = new_aside(self.home)
        return self.aside

    def _hand_over(self) -> None:
        """All that was made belongs to the owner of the home, also if root did it."""
        if os.geteuid() == 0:
            owner = self.home.path.stat()
            for tree in (self.staging, self.home.objects, self.home.damaged):
                for directory, names, files in os.walk(tree):
                    for name in (".", *names, *files):
                        os.chown(
                            os.path.join(directory, name), owner.st_uid, owner.st_gid, follow_symlinks=False
                        )


async def _append(path: Path, home: Home, draft: Draft) -> None:
    async with SqliteEventLog.open(path, clock=SystemClock(), objects=FileObjects(home.objects)) as log:
        await log.append(draft)
