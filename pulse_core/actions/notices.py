"""The action that notifies people."""

from pydantic import BaseModel, ConfigDict, Field

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.model import actions
from pulse_core.model.kinds import Effect
from pulse_core.projections import Snapshot
from pulse_core.projections.notices import PREFIX


class NoticeParams(BaseModel):
    """What to say."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    title: str = Field(min_length=1, max_length=500, description="the notice in a few words")
    text: str = Field("", max_length=10_000, description="what is wrong, what was tried, what comes next")
    over: bool = Field(False, description="it is over: what the notices of this key told before")


def is_known(topic: str, curr: Snapshot, is_over: bool = False) -> bool:
    """Whether no notice is needed: one was sent and no reminder is due; if `is_over`, whether no open notice exists."""
    told, remind = curr.notices[topic], curr.settings.notify.remind
    if told is None or told.over:
        return is_over
    return not is_over and (not remind or curr.now.since(told.last) < remind)


def is_told_too_soon(effect: Effect, curr: Snapshot) -> bool:
    """Whether a notice with the same content was sent already."""
    return is_known(effect.key.removeprefix(PREFIX), curr, bool(effect.params.get("over", False)))


NOTIFY = ActionDeclaration(
    actions.NOTIFY,
    NoticeParams,
    "Sends what is begun together as one message; a notice that reached some addresses is sent to the others only.",
    is_too_soon=is_told_too_soon,
)
