"""The capability of agents."""

from pulse_core.agents.actions import ACTIONS
from pulse_core.agents.admission import check_agent
from pulse_core.agents.events import KINDS, AgentPaused, AgentResumed
from pulse_core.agents.projection import RUNS
from pulse_core.agents.rules import RULES
from pulse_core.agents.settings import AGENTS, GENERAL
from pulse_core.agents.status import lines
from pulse_core.capability import Capability

CAPABILITY = Capability(
    "agents",
    kinds=KINDS,
    projections=(RUNS,),
    admits={AgentPaused.kind: check_agent, AgentResumed.kind: check_agent},
    rules=RULES,
    settings=(AGENTS, GENERAL),
    status=lines,
    actions=ACTIONS,
)
