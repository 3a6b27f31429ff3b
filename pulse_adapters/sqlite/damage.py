"""Damage at a start: what is refused, and what goes on by a person's order, a copy kept first."""

import logging
import shutil
from contextlib import suppress
from pathlib import Path

from pulse_adapters.sqlite.aside import new_aside
from pulse_adapters.sqlite.backup.databases import examine
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_adapters.sqlite.opening import Opening
from pulse_adapters.sqlite.payloads import lost_payloads
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged
from pulse_core.model.event import Draft
from pulse_core.model.kinds import DamageAccepted
from pulse_core.ports.clock import Clock
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints, Objects

LOG = logging.getLogger("pulse.daemon")
NAMED = 8
"""Lost payloads that are named one by one; `upulse verify` and the daemon's log go on."""


async def refuse_lost_rows(log: EventLog, checkpoints: Checkpoints) -> None:
    """Raise Damaged if the checkpoints stand at a row that the log does not have: then rows are gone."""
    for name, kept in (await checkpoints.load()).items():
        if await log.chain_at(kept.head.seq) != kept.head.chain:
            raise Damaged(
                f"events.db ends at row {log.head.seq}, or differs from what it was: state.db knows row"
                f" {kept.head.seq} ({name}); put the log back from a backup, or let"
                " `upulse daemon start --accept-damage` go on without the lost rows"
            )


async def accept_damage(
    home: HomeLayout, how: Opening, clock: Clock, objects: Objects
) -> tuple[Opening, tuple[Draft, ...]]:
    """Set a damaged log aside, if it is damaged: how to open it all the same, and what to record of that."""
    kept = set_aside(home)
    try:
        async with SqliteEventLog.open(home.events, clock=clock, objects=objects, how=how) as log:
            await refuse_lost_rows(log, SqliteCheckpoints(home.state))
    except Damaged as error:
        damage = str(error)
        for cache in home.path.glob(f"{home.state.name}*"):
            cache.unlink()  # it knows rows that are no more
    else:  # what was folded of lost payloads while they were there stays known
        lost = lost_payloads(home.events, home.objects)
        gone = [f"the payload of row {seq} ({kind}): {why}" for seq, kind, why in lost]
        more = len(gone) - NAMED
        damage = "; ".join([*gone[:NAMED], f"and {more} more"] if more > 0 else gone)
        try:
            examine(home.events, home.objects)
        except Damaged as error:
            damage = damage or str(error)
    if not damage:
        shutil.rmtree(kept)
        return how, ()
    LOG.warning("going on without what is damaged; a copy is kept in %s: %s", kept, damage)
    told = Draft(DamageAccepted(what=damage, kept_at=str(kept)))
    return how._replace(accept_damage=True), (told,)


def set_aside(home: HomeLayout) -> Path:
    """Copy the log with its -wal and -shm into a new numbered directory, and name it.

    Rows that were saved are moved there: from then on what lies under the log's name is the log.
    """
    kept = new_aside(home)
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            shutil.copy2(f"{home.events}{suffix}", kept)
    with suppress(FileNotFoundError):
        home.saved_log.rename(kept / home.saved_log.name)
    return kept
