"""Looks at guarded processes side by side: each tells of a process once."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

from pulse_core.ports.host import ProcessId, ProcessObservation, ProcessTable
from pulse_core.projections.processes import ProcessHistory
from pulse_core.settings.processes import ProcessSettings
from pulse_core.watch.process_looks import ProcessLooks


class SlowToSearch:
    """A process table whose first look does not end; those after it see nobody."""

    begun = False

    async def look(
        self, processes: Sequence[ProcessSettings], known: Mapping[str, ProcessId]
    ) -> Mapping[str, ProcessObservation]:
        if not self.begun:
            self.begun = True
            await asyncio.Event().wait()
        return {}


async def test_one_that_was_started_and_died_amid_another_look_is_looked_at_once() -> None:
    web = ProcessSettings(name="web", start=["web"])
    histories, stands = {"web": ProcessHistory()}, {"web": ProcessId(7, 1)}
    looks = ProcessLooks(cast("ProcessTable", SlowToSearch()), timeout=60.0)
    await looks.begin([web], histories, stands)
    await asyncio.sleep(0)  # the look at all has begun to search
    looks.add_started("web")
    looks.add_proof(ProcessId(7, 1))
    await looks.begin([web], histories, stands)
    look = looks.take_finished()
    assert look
    assert looks.newest_of(look) == [web]
    looks.close()
