"""Rows that the checkpoints know and the log does not have."""

import asyncio

from pulse_adapters.sqlite.backup.known_rows import another_home
from pulse_adapters.sqlite.checkpoints import SqliteCheckpoints
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.home import HomeLayout
from pulse_core.model.errors import Damaged
from pulse_core.ports.loops import finish_despite_cancel


async def refuse_lost_rows(home: HomeLayout, log: SqliteEventLog) -> None:
    """Raise Damaged if the log is another home's, or the checkpoints stand at a row that it does not have."""
    has_rows = log.head.seq > 0  # one that was begun in place of a lost log has an id of its own
    if has_rows and (words := await finish_despite_cancel(asyncio.to_thread(another_home, home, log.host))):
        raise Damaged(
            f"{words}; put this home's own back, or let `upulse daemon start --accept-damage` go on with the other one"
        )
    for name, kept in (await SqliteCheckpoints(home.state).load()).items():
        if await log.chain_at(kept.head.seq) != kept.head.chain:
            raise Damaged(
                f"events.db ends at row {log.head.seq}, or differs from what it was: state.db knows row"
                f" {kept.head.seq} ({name}); put the log back from a backup, or let"
                " `upulse daemon start --accept-damage` go on without the lost rows"
            )
