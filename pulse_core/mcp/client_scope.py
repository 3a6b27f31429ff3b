"""What a client with a token may say: of the tasks that it holds itself, and what the tools wish for in its name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import Field

from pulse_core.mcp.events import ClientReads, RuleProposed
from pulse_core.model.durations import UNITS
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect, PromoteRequested
from pulse_core.model.moment import Moment
from pulse_core.model.names import OUTWARD
from pulse_core.projections.state import State
from pulse_core.settings.groups import Group
from pulse_core.settings.settings import Settings
from pulse_core.settings.settings_group import SettingsGroup
from pulse_core.silences.events import SilenceAdded
from pulse_core.silences.projection import SILENCES
from pulse_core.tasks.admission import known_task
from pulse_core.tasks.events import TaskExecuting
from pulse_core.tasks.projection import TASKS
from pulse_core.tasks.task import HELD_BY_TOKEN, TaskState

OWN = frozenset({ClientReads.kind, RuleProposed.kind})
TOOLS = (
    "claim_task", "transition_task", "complete_task", "give_up_task", "open_pull_request", "add_silence", "propose_rule"
)  # fmt: skip
"""Those that change something."""
OPEN_PULL_REQUEST = "open-pull-request"
MOST_SILENCES, LONGEST_SILENCE = 10, UNITS["d"]
"""Of one client at a time, and how long one lasts at most."""


class McpSettings(Group):
    """`[mcp]`: agents that ask over MCP."""

    promote: bool = Field(
        False,
        description="whether a rule that an agent proposes comes into force once it has passed all gates",
    )


SETTINGS: SettingsGroup[McpSettings] = SettingsGroup("mcp", McpSettings, McpSettings())


@dataclass(frozen=True)
class ClientScope:
    """Implements `Scope`: of the client of this name. is_reserved: whether a key is survival's own; is_owners: whether the
    home's owner, or root, says the token."""

    actor: str
    settings: Callable[[], Settings]
    now: Callable[[], Moment]
    is_reserved: Callable[[str], bool]
    is_owners: bool = False

    @property
    def granted(self) -> frozenset[str]:
        """What tools wish for; to promote only as the settings say, and of the owner's server, which asks all gates."""
        promotes = self.is_owners and SETTINGS.of(self.settings()).promote
        return frozenset({Effect.kind, SilenceAdded.kind, *({PromoteRequested.kind} if promotes else ())})

    def bounded(self, draft: Draft, state: State) -> Draft:
        match draft.payload:
            case TaskExecuting() as claim:
                return replace(draft, payload=claim.model_copy(update={"agent": self.actor}), data="")
            case Effect(action=action, params=params) if action == OPEN_PULL_REQUEST:
                task = self._own(str(params.get("task")), state).id
                wish = {"key": f"{OPEN_PULL_REQUEST}:{task}", "reason": f"{self.actor} asked for it"}
                return replace(draft, payload=draft.payload.model_copy(update=wish), data="")
            case SilenceAdded() as silence:
                self._check_silence(draft.subject, silence, state)
            case payload if payload.kind in HELD_BY_TOKEN:
                self._own(draft.subject, state, is_claimed=True)
            case payload if payload.kind in OWN:
                return replace(draft, subject=self.actor)
            case payload if payload.kind not in self.granted - {Effect.kind}:
                raise Refused(
                    f"a client over MCP may do what its tools do, and nothing else: {', '.join(TOOLS)}"
                )
        return draft

    def _own(self, task: str, state: State, is_claimed: bool = False) -> TaskState:
        found = known_task(task, state.of(TASKS))
        if found.agent != self.actor or (is_claimed and not found.token):
            raise Refused(f"{found.id} is not held by {self.actor}; claim it before")
        return found

    def _check_silence(self, match: str, silence: SilenceAdded, state: State) -> None:
        """Refuse one that might hold back what survival does, and what a person would have to look after."""
        begin = re.split(r"[*?[]", match)[0]
        names = 2 if begin.partition(":")[0] in OUTWARD else 1
        if (begin.count(":") < names and begin != match) or self.is_reserved(match):
            raise Refused(
                f"{match!r} may hold back what survival does; name what is held back, as 'notify:guidance:*'"
            )
        if silence.expires_us > LONGEST_SILENCE:
            raise Refused("a silence of a client lasts at most 1d; a person may add a longer one")
        holding = state.of(SILENCES).holding(self.now()).values()
        if sum(one.by == self.actor for one in holding) >= MOST_SILENCES:
            raise Refused(
                f"{MOST_SILENCES} silences of {self.actor} hold already; wait, or have a person remove some"
            )

    def shown(self, state: State) -> Mapping[str, Json]:
        return {"client": self.actor}
