"""The watcher of what runs have left behind: marked by one that is over, or in its control group, and without a parent."""

import asyncio

from pulse_core.agents.projection import RUNS
from pulse_core.agents.rules import ORPHANS
from pulse_core.agents.run_files import RunFolder
from pulse_core.agents.settings import AGENTS
from pulse_core.capability import WatcherContext
from pulse_core.model.vitals import Reading, Window

OFTEN_S, IDLE_S, MOST = 60.0, 3_600.0, 100


class OrphansWatcher:
    """The watcher `agent-orphans`. A sample has for each process, by its pid: an `OrphanProgram`."""

    name = key = ORPHANS
    timeout = 60.0

    def __init__(self, context: WatcherContext) -> None:
        self._context, self.nudge = context, asyncio.Event()

    @property
    def interval(self) -> float:
        """Seconds between two searches."""
        return OFTEN_S if AGENTS.of(self._context.settings()) else IDLE_S

    def should_wake(self, window: Window) -> bool:
        """Whether somebody is left behind."""
        return bool(window.last and window.last.data)

    async def collect(self) -> Reading:
        """Search all processes."""
        users = {"", *(agent.user for agent in AGENTS.of(self._context.settings()))}
        found = await self._context.programs.orphans(str(self._context.home.path), users)
        state = self._context.state()
        runs = state.of(RUNS).runs.keys() | state.effects.open.keys()
        # Guarded processes have control groups, too: of who bears no mark of an agent the folder tells that it is a run's.
        home, over = self._context.home.path, [one for one in found if one.effect not in runs]
        left = [one for one in over if one.agent or RunFolder.of(home, one.effect).path.is_dir()][:MOST]
        return Reading({str(one.pid): {**one._asdict(), "agent": one.agent or "an agent"} for one in left})
