"""Writes the head of the log down outside of the home, so that a home that is forged as a whole is found out."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

from pulse_core.daemon.services import Changed, Failed
from pulse_core.model.anchor import Anchor
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import AnchorPlaces
from pulse_core.model.moment import US_PER_SECOND

Place = Callable[[str], Awaitable[bool | None]]
"""Writes a line down, and tells whether it is the first there; raises PulseError or OSError if it can't."""


async def write_anchors(
    newest: Callable[[], Anchor],
    places: Mapping[str, Place],
    every_us: int,
    failed: Failed,
    changed: Changed,
    mended: Callable[[], None],
) -> None:
    """For ever, write the log's head to each place if the log has grown. Returns if there is no place.

    Where nothing is written yet, that is recorded: either the anchor is new, or somebody took away what was there, and
    may have caused many failures before.
    mended: called when a line was written where the one before could not be.
    """
    last, missed = dict.fromkeys(places, 0), set[str]()
    while places:
        anchor = newest()
        for name, write in places.items():
            if anchor.head.seq > last[name]:
                try:
                    is_first = await write(anchor.line())
                except (PulseError, OSError) as error:
                    failed("anchor", f"{name}: {error}")
                    missed.add(name)
                else:
                    if is_first:
                        await changed("anchor", f"{name}: {_begun(anchor.head.seq, last[name])}")
                    last[name] = anchor.head.seq
                    if name in missed:
                        missed.discard(name)
                        mended()
        await asyncio.sleep(every_us / US_PER_SECOND)


async def record_places(
    named: Collection[str],
    recorded: Collection[str],
    append: Callable[[Draft], Awaitable[object]],
    changed: Changed,
) -> None:
    """Record where the head can be read again, unless the log says so: settings that are forged don't make that forgotten.

    What the settings name no more is recorded, too. Raises PulseError if that can't be recorded now.
    """
    if set(named) == set(recorded):
        return
    gone = sorted(set(recorded) - set(named))
    await append(Draft(AnchorPlaces(places=tuple(sorted(named)))))
    if gone:
        words = "the settings name it no more; if nobody meant that, put it back into [anchor], then: upulse verify"
        await changed("anchor", f"{', '.join(gone)}: {words}")


def _begun(row: int, before: int) -> str:
    if before:
        return f"it is begun anew at row {row}: somebody deleted, emptied or replaced it, and rows that it knew are gone"
    return f"it is begun at row {row}; if there was one before, the rows that it knew are gone from it"
