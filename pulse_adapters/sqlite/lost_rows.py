"""Rows that the checkpoints know and the log does not have."""

from pulse_core.model.errors import Damaged
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints


async def refuse_lost_rows(log: EventLog, checkpoints: Checkpoints) -> None:
    """Raise Damaged if the checkpoints stand at a row that the log does not have: then rows are gone."""
    for name, kept in (await checkpoints.load()).items():
        if await log.chain_at(kept.head.seq) != kept.head.chain:
            raise Damaged(
                f"events.db ends at row {log.head.seq}, or differs from what it was: state.db knows row"
                f" {kept.head.seq} ({name}); put the log back from a backup, or let"
                " `upulse daemon start --accept-damage` go on without the lost rows"
            )
