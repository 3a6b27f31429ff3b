"""Which agents may be paused."""

from pulse_core.agents.settings import AGENTS
from pulse_core.model.errors import UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.payload import Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings


def check_agent(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a name that is no agent's."""
    names = [agent.name for agent in AGENTS.of(settings)]
    if draft.subject not in names:
        raise UnknownName("[[agent]]", draft.subject, names)
