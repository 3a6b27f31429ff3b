"""The capability of agents."""

from pulse_core.agents.actions import ACTIONS
from pulse_core.agents.events import KINDS, AgentPaused, AgentResumed
from pulse_core.agents.listing import status_lines
from pulse_core.agents.projection import RUNS
from pulse_core.agents.rules import RULES
from pulse_core.agents.settings import AGENTS, GENERAL, known_agent
from pulse_core.capability import Capability
from pulse_core.model.event import Draft
from pulse_core.model.payload import Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings


def check_agent(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a name that is no agent's."""
    known_agent(draft.subject, settings)


CAPABILITY = Capability(
    "agents",
    kinds=KINDS,
    projections=(RUNS,),
    admits={AgentPaused.kind: check_agent, AgentResumed.kind: check_agent},
    rules=RULES,
    own_topics=frozenset({"agent", "agent-run"}),
    settings=(AGENTS, GENERAL),
    status=status_lines,
    programs=lambda curr: (f"{run.agent} at {run.task} (process {run.pid})" for run in curr.of(RUNS).live),
    actions=ACTIONS,
)
