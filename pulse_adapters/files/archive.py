"""The program that archives sessions: finishes an interrupted run, deletes expired archives, writes new ones.

An archive is written, read back, compared with the files, and only then are these deleted. A batch is a few sessions:
a nearly full disk needs room for one batch, and each batch frees some.
"""

import errno
import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pulse_adapters.files import worker
from pulse_adapters.files.in_use import find_files_in_use
from pulse_adapters.files.safe_directory import SafeDirectory, is_near, open_directory, reason_forbidden
from pulse_adapters.files.sessions import MOST, KeptReason, Session, SessionReader, delete_session
from pulse_adapters.files.tarball import (
    ArchiveUnreadable,
    Manifest,
    SessionChanged,
    archive_holds,
    read_back,
    write_archive,
)
from pulse_adapters.files.worker import Deadline, OrderRefused, OutOfTime, describe_os_error
from pulse_adapters.workers.users import expand_home
from pulse_core.model.batches import in_batches

BATCH_BYTES, BATCH_SESSIONS = 64 << 20, 1_000
PART = re.compile(r"\.sessions-.*\.part")
NAME = re.compile(r"sessions-(\d{8}T\d{6}Z)-(.+)-(\d+)\.tar\.gz")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class ArchiveReport:
    """The sessions archived, those left with the reason, and the archives written and expired."""

    sessions: int = 0
    bytes: int = 0
    archives: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    expired: list[str] = field(default_factory=list)

    @property
    def told(self) -> dict[str, Any]:
        """As JSON of bounded size."""
        return {
            **vars(self),
            "archives": self.archives[-20:],
            "left": dict(self.left.most_common(20)),
            "expired": self.expired[-20:],
        }


class Archiver:
    """Archives the sessions of one root into one directory; `effect` is part of the archives' names."""

    def __init__(self, reader: SessionReader, store: SafeDirectory, effect: str, deadline: Deadline) -> None:
        self.reader, self.store, self.effect, self.deadline = reader, store, effect, deadline
        self.root = reader.root
        self.tally = ArchiveReport()

    def tidy(self) -> None:
        """Remove partial archives of an earlier run; no other run is here, since the directory is locked."""
        for name in self._names():
            if PART.fullmatch(name):
                os.unlink(name, dir_fd=self.store.fd)

    def finish(self) -> None:
        """Delete the sessions that an interrupted run of this effect has archived but not deleted.

        Deletions change a directory's time, so only the times of files count.
        """
        anything = SessionReader(self.root, sys.maxsize, self.reader.used, self.deadline)
        for name in self._names():
            if (found := NAME.fullmatch(name)) and found[2] == self.effect:
                self.tally.archives.append(name)
                with suppress(ArchiveUnreadable):
                    manifest = self._read(name)
                    names = sorted({path.partition("/")[0] for path in manifest})
                    left = self._sessions(names, anything)
                    self._delete(
                        [one for one in left if archive_holds(manifest, self.root, one, self.deadline)]
                    )

    def expire(self, before_ns: int) -> None:
        """Delete archives whose retention is over, by their name and by their file's own time."""
        for name in self._names():
            if found := NAME.fullmatch(name):
                try:
                    made = datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
                except ValueError:
                    continue  # its digits are no date: it is somebody else's
                if (
                    max(made.timestamp() * 10**9, os.lstat(name, dir_fd=self.store.fd).st_mtime_ns)
                    < before_ns
                ):
                    os.unlink(name, dir_fd=self.store.fd)
                    self.tally.expired.append(name)

    def archive(self) -> None:
        """Archive batch by batch, the smallest sessions first: each frees room for a larger one."""
        with os.scandir(self.root.fd) as entries:
            names = sorted(entry.name for entry in entries)
        found = sorted(self._sessions(names, self.reader), key=lambda session: session.size)
        taken = [int(known[3]) for name in self._names() if (known := NAME.fullmatch(name))]
        batches = in_batches(found, BATCH_SESSIONS, lambda session: session.size, BATCH_BYTES)
        for number, batch in enumerate(batches, max(taken, default=0) + 1):
            name = f"sessions-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{self.effect}-{number}.tar.gz"
            self._archive_batch(batch, name)

    def _sessions(self, names: Sequence[str], reader: SessionReader) -> list[Session]:
        """The sessions of these names that may be archived, in chunks that bound memory."""
        found, pieces = list[Session](), 0
        for name in names:
            if pieces > MOST:
                self.tally.left["left for the next time"] += 1
                continue
            try:
                found.append(reader.session(name))
                pieces += len(found[-1].pieces)
            except KeptReason as kept:
                self.tally.left[str(kept)] += 1
            except FileNotFoundError:
                continue
        return found

    def _archive_batch(self, batch: Sequence[Session], name: str) -> None:
        """Archive a batch: written, read back and compared with the files, renamed, and only then deleted."""
        part = f".{name}.{secrets.token_hex(8)}.part"
        try:
            written = self._write(part, list(batch))
            manifest = self._read(part)
            safe = [
                one
                for one in written
                if self._is_whole(one) and archive_holds(manifest, self.root, one, self.deadline)
            ]
            if safe:
                os.rename(part, name, src_dir_fd=self.store.fd, dst_dir_fd=self.store.fd)
                os.fsync(self.store.fd)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise OrderRefused(f"there is no room in {self.store.path} for an archive") from error
            raise OrderRefused(
                f"no archive could be written to {self.store.path}: {describe_os_error(error)}"
            ) from error
        except ArchiveUnreadable as error:
            raise OrderRefused(
                f"what was written to {self.store.path} could not be read back: {error}"
            ) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=self.store.fd)
        if len(safe) < len(batch):
            self.tally.left["changed meanwhile, or unreadable"] += len(batch) - len(safe)
        if safe and self._delete(safe):
            self.tally.archives.append(name)
        elif safe:
            os.unlink(name, dir_fd=self.store.fd)  # all that it holds is where it was

    def _write(self, part: str, batch: list[Session]) -> Sequence[Session]:
        """Write the sessions of the batch; one that changes meanwhile is left out."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=self.store.fd), "wb") as file:
            while True:
                try:
                    write_archive(file, self.root, batch, self.deadline)
                except SessionChanged as changed:
                    batch = [session for session in batch if session.name != str(changed)]
                    file.seek(0)
                    file.truncate()
                else:
                    return batch

    def _read(self, name: str) -> Manifest:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self.store.fd), "rb") as file:
            return read_back(file, self.deadline)

    def _delete(self, sessions: Sequence[Session]) -> int:
        """Delete sessions that an archive holds; returns how many were deleted at least in part."""
        changed = 0
        for session in sessions:
            if delete_session(self.root, session):
                self.tally.sessions += 1
                self.tally.bytes += session.blocks
                changed += 1
            else:
                self.tally.left["could not be deleted"] += 1
                changed += not self._is_whole(session)
        return changed

    def _is_whole(self, session: Session) -> bool:
        try:
            return self.reader.session(session.name) == session
        except (KeptReason, FileNotFoundError):
            return False

    def _names(self) -> list[str]:
        with os.scandir(self.store.fd) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))


def open_directories(order: Mapping[str, Any], stack: ExitStack) -> tuple[SafeDirectory, SafeDirectory]:
    """Open the root and the directory for archives, which is made if missing, and locked against another run."""
    try:
        root = stack.enter_context(closing(open_directory(expand_home(order["root"]))))
    except FileNotFoundError as error:
        raise OrderRefused(f"{order['root']} is not there; name a directory as root of sessions") from error
    if fault := reason_forbidden(root.path, order["home"], order["own"]):
        raise OrderRefused(fault)
    store = stack.enter_context(closing(make_directory(expand_home(order["archive"]))))
    if f"{store.path}/".startswith(f"{root.path}/") or f"{root.path}/".startswith(f"{store.path}/"):
        raise OrderRefused(f"{store.path} and {root.path} lie in one another; archive to another directory")
    if not store.lock():
        raise OrderRefused(f"sessions are being archived to {store.path} already")
    return root, store


def make_directory(path: str) -> SafeDirectory:
    """Make the directory for archives; only the last component of the path is made if it is missing."""
    with suppress(FileNotFoundError):
        return open_directory(path)
    above, name = os.path.split(path.rstrip("/"))
    try:
        with closing(open_directory(above)) as parent:
            os.mkdir(name, mode=0o700, dir_fd=parent.fd)
        return open_directory(path)
    except OSError as error:
        raise OrderRefused(
            f"{path}, for the archives, cannot be made: {describe_os_error(error)}; make it by hand"
        ) from error


def archive_root(order: Mapping[str, Any], deadline: Deadline) -> Mapping[str, Any]:
    """Remove partial archives, finish an interrupted run; unless `finish_only`, expire old archives and write new ones."""
    now = time.time_ns()
    with ExitStack() as stack:
        root, store = open_directories(order, stack)
        if order["near"] and not is_near(root, order["near"]):
            return {"sessions": 0, "passed": f"{root.path} is on another file system than {order['near']}"}
        reader = SessionReader(root, now - order["keep_us"] * 1000, find_files_in_use(), deadline)
        archiver = Archiver(reader, store, order["effect"], deadline)
        tally = archiver.tally
        try:
            archiver.tidy()
            archiver.finish()
            if not order["finish_only"]:
                archiver.expire(now - order["retain_us"] * 1000)
                archiver.archive()
        except OutOfTime:
            return {**tally.told, "finished": False}
        except OrderRefused as error:
            before = f"; {tally.sessions} sessions were archived before that" if tally.sessions else ""
            raise OrderRefused(f"{error}{before}") from error
        except OSError as error:
            raise OrderRefused(f"{error.filename or root.path}: {describe_os_error(error)}") from error
        return {**tally.told, "finished": True}


if __name__ == "__main__":
    worker.run_order(archive_root, idle=True)
