"""Writes the head of the log down outside of the home, so that a home that is forged as a whole is found out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pulse_core.daemon.services import Failed
from pulse_core.model.anchor import Anchor
from pulse_core.model.errors import PulseError
from pulse_core.model.moment import US_PER_SECOND

Place = Callable[[str], Awaitable[None]]
"""Writes a line down; raises PulseError or OSError if it can't."""


async def write_anchors(
    newest: Callable[[], Anchor], places: Mapping[str, Place], every_us: int, failed: Failed
) -> None:
    """For ever, write the log's head to each place if the log has grown. Returns if there is no place."""
    last = dict.fromkeys(places, 0)
    while places:
        anchor = newest()
        for name, write in places.items():
            if anchor.head.seq > last[name]:
                try:
                    await write(anchor.line())
                except (PulseError, OSError) as error:
                    failed("anchor", f"{name}: {error}")
                else:
                    last[name] = anchor.head.seq
        await asyncio.sleep(every_us / US_PER_SECOND)
