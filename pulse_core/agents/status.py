"""What the status says of agents."""

from collections.abc import Iterator

from pulse_core.agents.assignment import unavailable
from pulse_core.agents.projection import RUNS
from pulse_core.agents.settings import AGENTS
from pulse_core.model.text import count
from pulse_core.projections.state import Snapshot


def lines(curr: Snapshot) -> Iterator[str]:
    """How many work, and who gets nothing, if there are agents."""
    agents = AGENTS.of(curr.settings)
    if kept := curr.of(RUNS).kept:
        yield f"worktrees {count(len(kept), 'worktree')} of tasks that have ended: upulse agents worktrees"
    if not agents:
        return
    live = curr.of(RUNS).live
    yield f"agents    {len(agents)}, {len({run.agent for run in live})} at work on {len(live)} tasks"
    for agent in agents:
        if why := unavailable(agent, curr):
            yield f"          {agent.name} is {why}"
