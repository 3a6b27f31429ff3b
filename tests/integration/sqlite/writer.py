"""Appends events from several callers for ever and prints the id of each one that was acknowledged."""

import asyncio
import os
import sys
import time
from pathlib import Path

from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.events import SqliteEventLog
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused
from pulse_core.model.moment import Moment


class Clock:
    def now(self) -> Moment:
        return Moment(time.time_ns() // 1000, "boot", time.monotonic_ns() // 1000)


async def main(home: Path) -> None:
    objects = FileObjects(home / "objects")

    async def caller(number: int) -> None:
        for place in range(1_000_000):
            drafts = [Draft(Paused(why="x" * 50), subject=f"{number}-{place}")] * (place % 3 + 1)
            events = await log.append(*drafts)
            os.write(1, "".join(f"{event.id}\n" for event in events).encode())

    async with SqliteEventLog.open(home / "events.db", clock=Clock(), objects=objects) as log:
        await asyncio.gather(*(caller(number) for number in range(4)))


asyncio.run(main(Path(sys.argv[1])))
