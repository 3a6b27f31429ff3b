"""The log, and what is kept beside it: is all there that was written?"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.backup.known_rows import (
    NEW_BEGINNINGS,
    LastBackup,
    LogComparison,
    compared,
    last_backup,
    last_checkpoint_row,
)
from pulse_adapters.sqlite.checkpoints import read_checkpoints
from pulse_adapters.sqlite.connect import connect_readonly, is_open_elsewhere, refuse_damage
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.opening import TAIL, check_tail
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_adapters.sqlite.verify import verify
from pulse_core import __version__
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.moment import iso
from pulse_core.ports.readers import EventQuery
from upulse_cli.doctor.findings import FAIL, OK, WARN, Finding, Ground
from upulse_cli.moments import local

SMALL = 100_000
"""Rows up to which the log is read as a whole: about half a second."""

OLD_BACKUP_US = 7 * 86_400 * 1_000_000
RESTORE = (
    "upulse restore a backup; or upulse daemon start --accept-damage, which goes on without what is lost"
)


def log(ground: Ground) -> Iterator[Finding]:
    """Whether the log can be opened, and its last rows, or all of them, are what was written."""
    home = ground.home
    if not home.events.exists():
        yield Finding(
            "log",
            FAIL,
            f"there is no {home.events}",
            "upulse restore a backup; a start would begin a new log",
        )
        return
    try:
        refuse_damage(home.events)
        rows, words = _read(ground)
    except Damaged as damage:
        yield Finding("log", FAIL, str(damage), RESTORE)
        return
    if words and _is_accepted(home):
        yield Finding("log", WARN, f"{words}; this damage was accepted, and all after that is good")
    elif words:
        yield Finding("log", FAIL, f"{words}; {rows} rows before it are good", RESTORE)
    else:
        yield from _sound(ground, rows)


def _read(ground: Ground) -> tuple[int, str]:
    """How many rows are good, as far as they are read, and what is wrong with the next."""
    home = ground.home
    try:
        with closing(connect_readonly(home.events)) as connection:
            head = connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
            if not ground.deep and head > SMALL:
                check_tail(connection, home.events, head)
                return head, ""
    except sqlite3.DatabaseError as error:
        return 0, f"the log can't be read: {error}"
    verdict = verify(home.events, home.objects, expect=last_checkpoint_row(home))
    return verdict.rows, verdict.fault


def _is_accepted(home: Home) -> bool:
    try:
        return bool(examine(home.events, home.objects).accepted)
    except PulseError:
        return False


def _sound(ground: Ground, rows: int) -> Iterator[Finding]:
    whole = ground.deep or rows <= SMALL
    wal = "the daemon has it open" if is_open_elsewhere(_shm(ground.home)) else "its -wal is whole"
    if whole:
        yield Finding("log", OK, f"all {rows} rows are what was written; {wal}")
        return
    yield Finding("log", OK, f"the last {TAIL} of {rows} rows are what was written; {wal}",
                  "upulse doctor --deep reads all of them")  # fmt: skip
    lost = [f"the payload of row {seq} ({kind}): {why}"
            for seq, kind, why in lost_payloads(ground.home.events, ground.home.objects)]  # fmt: skip
    if lost:
        yield Finding("objects", FAIL, f"{len(lost)} large payloads are lost; {lost[0]}", RESTORE)
    else:
        yield Finding("objects", OK, "every object that the log names is there")


def _shm(home: Home) -> Path:
    return home.events.with_name(f"{home.events.name}-shm")


def verified(ground: Ground) -> Iterator[Finding]:
    """When the whole log was last read by the daemon, and what it found."""
    if (last := newest(ground.home, "log-verified")) is None:
        yield Finding(
            "last check", WARN, "the daemon has not read the whole log yet", "it does, soon after each start"
        )
    elif fault := last[1].get("fault"):
        begun = [one for kind in NEW_BEGINNINGS if (one := newest(ground.home, kind))]
        level = WARN if begun else FAIL  # what was accepted is found again each time
        yield Finding(
            "last check", level, f"{local(iso(last[0]))}: {fault}", "" if level == WARN else RESTORE
        )
    else:
        yield Finding(
            "last check", OK, f"{local(iso(last[0]), date=True)}: all {last[1].get('rows')} rows were good"
        )


def newest(home: Home, kind: str) -> tuple[int, dict[str, object]] | None:
    """The newest event of this kind: when, and its data."""
    try:
        with SqliteEventReader(home.path) as reader:
            row = next(reader.events(EventQuery(kinds=(kind,)), limit=1, newest_first=True), None)
            return (row.at, json.loads(row.data)) if row else None
    except PulseError:  # said of the log itself
        return None


def checkpoints(ground: Ground) -> Iterator[Finding]:
    """Whether the log has the rows that state.db knows; a cache that can't be read is only a nuisance."""
    home = ground.home
    if not home.state.exists():
        yield Finding("state", OK, "no checkpoint yet: the next start reads the whole log")
        return
    found = read_checkpoints(home.state)
    if not found:
        yield Finding("state", WARN, "state.db can't be read; it is a cache, and the next start reads the whole log",
                      "delete it while the daemon is down, or upulse doctor --repair",
                      (lambda: _forgotten(home)) if ground.holder is None else None)  # fmt: skip
        return
    head = max(checkpoint.head for checkpoint in found.values())
    good = f"checkpoints stand at row {head.seq} of this log"
    yield _known(compared(home, head, "state.db"), "state", good)


def _forgotten(home: Home) -> str:
    with HomeLock(home.lock, __version__):
        for path in home.path.glob(f"{home.state.name}*"):
            path.unlink()
    return "state.db is deleted; the next start makes it anew"


def _known(comparison: LogComparison, name: str, good: str) -> Finding:
    agrees, words = comparison
    return Finding(name, OK, words or good) if agrees else Finding(name, FAIL, words, RESTORE)


def backup(ground: Ground) -> Iterator[Finding]:
    """Whether there is a recent backup, and the log still has what was in it."""
    last = last_backup(ground.home)
    if last is None:
        yield Finding(
            "backup", WARN, "there was no backup of this home yet", "upulse backup DIRECTORY, every day"
        )
        return
    when = local(iso(last.made_at), date=True)
    good = f"the last one was made {when}: {last.path}"
    comparison = compared(ground.home, last.row, f"the backup in {last.path}", last.made_at)
    finding = _known(comparison, "backup", good)
    yield _aged(finding, last, when)


def _aged(finding: Finding, last: LastBackup, when: str) -> Finding:
    if finding.level != OK:
        return finding
    if not Path(last.path).exists():
        return finding._replace(level=WARN, words=f"the last one, of {when}, is not in {last.path} now",
                                remedy="make sure that it is somewhere: upulse backup DIRECTORY")  # fmt: skip
    if time.time_ns() // 1000 - last.made_at > OLD_BACKUP_US:
        return finding._replace(level=WARN, remedy="upulse backup DIRECTORY, every day")
    return finding


def vitals(ground: Ground) -> Iterator[Finding]:
    """Whether samples and ticks can be read; they may be lost."""
    path = ground.home.vitals
    if not path.exists():
        yield Finding("vitals", OK, "none yet")
        return
    try:
        with closing(connect_readonly(path)) as connection:
            samples, ticks = connection.execute(
                "SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM tick)"
            ).fetchone()
        yield Finding("vitals", OK, f"{samples} samples and {ticks} ticks, {path.stat().st_size >> 20} MiB")
    except sqlite3.Error as error:
        yield Finding("vitals", WARN, f"{path} can't be read: {error}",
                      "nothing: the next start sets it aside and begins a new one")  # fmt: skip


def aside(ground: Ground) -> Iterator[Finding]:
    """Copies of what was damaged: they keep objects from being removed."""
    kept = sorted(path.name for path in ground.home.damaged.glob("*"))
    if kept:
        yield Finding("damaged", WARN, f"{ground.home.damaged} keeps what was set aside ({', '.join(kept)}), and while it"
                      " does no object is removed", "delete them once nobody needs them any more")  # fmt: skip
