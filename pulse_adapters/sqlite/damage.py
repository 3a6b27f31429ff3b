"""Damage at a start that a person accepts: the daemon goes on without what is damaged, a copy kept first."""

import asyncio
import logging
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pulse_adapters.sqlite.aside import new_aside
from pulse_adapters.sqlite.backup.databases import examine, read_present_log, salvage
from pulse_adapters.sqlite.chain import ALL_COLUMNS
from pulse_adapters.sqlite.connect import refuse_odd_files
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.lost_rows import refuse_lost_rows
from pulse_adapters.sqlite.open_log import Opening, open_writer
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_adapters.sqlite.synced_files import put_file
from pulse_adapters.workers.database_files import files_of, left_beside_link, names_beside
from pulse_adapters.workers.untrusted_paths import hand_over
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged, PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import DamageAccepted
from pulse_core.ports.clock import Clock
from pulse_core.ports.stores import Objects

LOG = logging.getLogger("pulse.daemon")
NAMED = 8
"""Lost payloads that are named one by one; `upulse verify` and the daemon's log go on."""


async def accept_damage(
    home: HomeLayout, how: Opening, clock: Clock, objects: Objects
) -> tuple[Opening, tuple[Draft, ...]]:
    """Set a damaged log aside, if it is damaged: how to open it all the same, and what to record of that.

    One that can't be used at all is replaced by a new one, which has the rows before the first that is damaged.
    """
    moved_away = [what for what, _, _ in _unread(home)]
    kept = set_aside(home)
    try:
        damage = await _damage(home, how, clock, objects)
        if not damage and not moved_away:
            shutil.rmtree(kept)
            return how, ()
        unusable = await asyncio.to_thread(_why_unusable, home.events, how._replace(accept_damage=True))
    except PulseError:  # another thing than damage: there will be another try
        if not moved_away:
            shutil.rmtree(kept)
        raise
    damage = damage or f"{' and '.join(moved_away)} were set aside"
    LOG.warning("going on without what is damaged; a copy is kept in %s: %s", kept, damage)
    told = Draft(DamageAccepted(what=damage, kept_at=str(kept)))
    if not unusable:
        return how._replace(accept_damage=True), (told,)
    rows = await _begin_anew(home, clock, objects, told)
    LOG.warning(
        "%s can't be used (%s): a new log is begun, with its first %d rows", home.events, unusable, rows
    )
    return how, ()


async def _damage(home: HomeLayout, how: Opening, clock: Clock, objects: Objects) -> str:
    """What is wrong with the log, in words; empty if nothing is."""
    try:
        async with SqliteEventLog.open(home.events, clock=clock, objects=objects, how=how) as log:
            await refuse_lost_rows(home, log)
    except Damaged as error:
        _forget_state(home)
        return str(error)
    damage = ""
    try:  # what was folded of lost payloads while they were there stays known
        lost = lost_payloads(home.events, home.objects)
        gone = [f"the payload of row {seq} ({kind}): {why}" for seq, kind, why in lost]
        more = len(gone) - NAMED
        damage = "; ".join([*gone[:NAMED], f"and {more} more"] if more > 0 else gone)
        examine(home.events, home.objects)
    except Damaged as error:
        damage = damage or str(error)
    return damage


def _forget_state(home: HomeLayout) -> None:
    """Remove the checkpoints: they know rows that are no more."""
    for cache in home.path.glob(f"{home.state.name}*"):
        cache.unlink()


def _why_unusable(path: Path, how: Opening) -> str:
    """Why the log can't be written and read to its end, though its damage is accepted; empty if it can."""
    try:
        with closing(open_writer(path, how)[0]) as connection:
            for _ in connection.execute(f"SELECT {ALL_COLUMNS} FROM event ORDER BY seq"):
                pass
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except (Damaged, sqlite3.DatabaseError) as error:
        return str(error)
    return "" if said == "ok" else said


async def _begin_anew(home: HomeLayout, clock: Clock, objects: Objects, told: Draft) -> int:
    """Put a new log in the place of the damaged one, with the rows before its damage; how many those are.

    What happened is its next row before it has its name.
    """
    with TemporaryDirectory(prefix=".rebuilt-", dir=home.path) as directory:
        made = Path(directory, home.events.name)
        rows = await asyncio.to_thread(_carry_over, home, made)
        how = Opening(accept_damage=True)
        async with SqliteEventLog.open(made, clock=clock, objects=objects, how=how) as log:
            await log.append(told)
        await asyncio.to_thread(_replace, home, made)
    return rows


def _replace(home: HomeLayout, made: Path) -> None:
    """Give what was made the log's name, of which a copy is kept."""
    hand_over(made, home.path)
    _forget_state(home)
    if not home.events.is_symlink():  # what it leads to stays as it is
        for file in names_beside(home.events)[1:]:
            file.unlink(missing_ok=True)
    put_file(made, home.events)


def _carry_over(home: HomeLayout, made: Path) -> int:
    """Make a log of the sound rows and of the home's id, as far as they can be read; how many rows it has."""
    open_writer(made, Opening())[0].close()
    rows = salvage(home.events, made, home.objects).rows
    host = "coalesce((SELECT host FROM event WHERE seq = 1), nullif(?, ''), value)"
    with closing(sqlite3.connect(made)) as copy, copy:
        known = read_present_log(home.events).host
        copy.execute(f"UPDATE meta SET value = {host} WHERE key = 'host'", (known,))
    return rows


def set_aside(home: HomeLayout) -> Path:
    """Copy the log with its -wal and -shm into a new numbered directory, and name it.

    Rows that nobody reads are moved there: from then on what lies under the log's name is the log. Raises PulseError if
    something else than a file lies there.
    """
    try:
        refuse_odd_files(home.events)
    except sqlite3.DatabaseError as error:
        raise PulseError(str(error)) from error
    kept = new_aside(home)
    for file, name in zip(files_of(home.events), names_beside(home.events), strict=True):
        with suppress(FileNotFoundError):
            shutil.copy2(file, kept / name.name)
    for _, path, kept_as in _unread(home):
        path.rename(kept / kept_as)
    return kept


def _unread(home: HomeLayout) -> list[tuple[str, Path, str]]:
    """Rows that may be in no log any more: what they are, where they lie, and a name to keep them under."""
    found = []
    if home.saved_log.exists():
        words = "the rows that were saved when the log was deleted"
        found.append((words, home.saved_log, home.saved_log.name))
    if wal := left_beside_link(home.events):
        found.append(("a -wal beside the link to the log", wal, f"{wal.name}.beside-link"))
    return found
