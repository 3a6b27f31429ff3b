"""Rows of the log that somebody knows to have been there: the last backup, the last checkpoint.

A log that was cut short is sound in itself; only who knows one of its later rows can tell.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pulse_adapters.sqlite.checkpoints import read_checkpoints, read_host
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.last_write import last_row_of_any
from pulse_adapters.workers.plain_file import read_plain
from pulse_adapters.workers.untrusted_paths import hand_over
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import iso
from pulse_core.ports.readers import EventQuery

if TYPE_CHECKING:
    from pulse_adapters.sqlite.backup.manifest import Manifest

LAST_BACKUP = "last-backup.json"
NEW_BEGINNINGS = ("damage-accepted", "log-restored")
"""After these, others may know rows of the log before."""


def another_home(home: HomeLayout, host: str = "") -> str:
    """That the log is another home's than the one that state.db knows, in words; empty if nothing says so.

    host: the id that the log has; else it is read.
    """
    if not (known := read_host(home.state)):
        return ""
    if not host:
        with suppress(PulseError), SqliteEventReader(home.path) as log:
            host = log.host()
    return _unlike(home, host, "state.db", known)


def _unlike(home: HomeLayout, host: str, who: str, known: str) -> str:
    if not (host and known) or host == known:
        return ""
    return f"{home.events} is the log of another home: its id is {host}, and {who} knows this home as {known}"


def compare_with_log(
    home: HomeLayout, row: tuple[int, bytes], who: str, since: int | None = None, host: str = ""
) -> tuple[bool, str]:
    """Whether the log and a row with its chain value that `who` knows agree; how they don't, or why they need not.

    since: when he learned of it (UTC microseconds), if that may have been before the log had a new beginning; host: the id
    by which he knows the home, empty if he does not.
    Raises PulseError if the log can't be read.
    """
    seq, chain = row
    with SqliteEventReader(home.path) as log:
        there, head, found = log.chain_at(seq), log.head().seq, log.host()
        begun = next(log.events(EventQuery(kinds=NEW_BEGINNINGS), newest_first=True), None)
    if there == chain:
        return True, ""
    if begun and since is not None and begun.at > since:
        return True, f"{who} is of the log before row {begun.seq} ({begun.kind})"
    if words := _unlike(home, found, who, host):
        return False, words
    if there is None:
        return False, f"{who} knows row {seq}, the log ends at row {head}: rows are lost"
    return False, f"row {seq} is not the one that {who} knows: rows are altered"


def last_checkpoint_row(home: HomeLayout) -> tuple[int, bytes] | None:
    """A row that was there at the last checkpoint, with its chain value; None if nobody knows one.

    Nor if damage was accepted before that row: then the checkpoint may be of the log before it.
    """
    heads = [checkpoint.head for checkpoint in read_checkpoints(home.state).values()]
    if not heads:
        return None
    try:
        with SqliteEventReader(home.path) as log:
            accepted = next(log.events(EventQuery(kinds=("damage-accepted",)), newest_first=True), None)
    except PulseError:  # it will be said in full
        return None
    return None if accepted and accepted.seq <= max(heads).seq else max(heads)


def others_who_know(home: HomeLayout) -> dict[int, str]:
    """The last row that each of those knows who may outlive the end of a log.

    No tick is asked: it may have seen a row that was announced before it was on disk.
    """
    found = {last_row_of_any(home.events): f"{home.events}-boot"}
    found |= {one.head.seq: str(home.state) for one in read_checkpoints(home.state).values()}
    if last := last_backup(home):
        found[last.row[0]] = f"the backup in {last.path}"
    return found


class LastBackup(NamedTuple):
    """Where it is, when it was made (UTC microseconds), the last row of the log in it, with its chain value.

    host: the id of the home; empty where an earlier version remembered the backup.
    """

    path: str
    made_at: int
    row: tuple[int, bytes]
    host: str = ""


def remember_backup(home: HomeLayout, path: Path, manifest: "Manifest") -> None:
    """Keep it in mind; a home that can't be written is backed up all the same."""
    # Slow, and whoever only reads the log needs none of it.
    from pulse_adapters.sqlite.backup.files import write_synced

    with suppress(OSError):
        kept = {"path": str(path), "made_at": manifest.made_at, "seq": manifest.seq, "chain": manifest.chain}
        kept["host"] = manifest.host
        write_synced(home.path / LAST_BACKUP, json.dumps(kept) + "\n")
        hand_over(home.path / LAST_BACKUP, home.path)


def last_backup(home: HomeLayout) -> LastBackup | None:
    """The last one that was made, or None."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(read_plain(home.path / LAST_BACKUP, 1 << 20))
        row = int(kept["seq"]), bytes.fromhex(kept["chain"])
        return LastBackup(str(kept["path"]), int(kept["made_at"]), row, str(kept.get("host", "")))
    return None


def last_backup_fault(home: HomeLayout) -> str:
    """Why the home can't tell which backup was the last, in words; empty if it can, or never knew of one."""
    path = home.path / LAST_BACKUP
    if last_backup(home) or not os.path.lexists(path):
        return ""
    return f"{path} can't be read: which backup was the last, and that the log has its rows, nobody can tell"


def compare_with_backup(home: HomeLayout) -> Iterator[tuple[str, str]]:
    """What the last backup has against this log, or says of it: of its own last row, and of the newest it was made of."""
    if (last := last_backup(home)) is None:
        yield "", last_backup_fault(home)
        return
    from pulse_adapters.sqlite.backup.manifest import read_manifest

    rows = {last.row: last.made_at}
    with suppress(PulseError, OSError), SqliteEventReader(home.path) as log:
        manifest, newest = read_manifest(Path(last.path)), next(log.events(limit=1, newest_first=True), None)
        if newest and manifest.host == newest.host:
            rows[manifest.head] = manifest.made_at
    for row, made_at in rows.items():
        who = f"the backup of {iso(made_at)} in {last.path}"
        agrees, words = compare_with_log(home, row, who, made_at, last.host)
        yield ("", words) if agrees else (words, "")
