"""People are told of guidance that no agent has acknowledged."""

from pydantic import Field

from pulse_core.guidance.projection import GUIDANCE
from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.names import NOTIFY
from pulse_core.model.verdict import Verdict
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.settings.groups import Duration, Group
from pulse_core.settings.settings_group import SettingsGroup


class GuidanceSettings(Group):
    """`[guidance]`: changes of plans, and the agents that must notice them."""

    remind_after: Duration = Field(
        15 * UNITS["m"],
        ge=0,
        description="how long a change may wait for an acknowledgement before people are told; 0: they are not",
    )


SETTINGS: SettingsGroup[GuidanceSettings] = SettingsGroup("guidance", GuidanceSettings, GuidanceSettings())


async def remind_of_guidance(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Tell people once of each change that has waited too long, and look again when the next one has."""
    verdict = await inner(prev, curr)
    if not (longest := SETTINGS.of(curr.settings).remind_after):
        return verdict
    for root, project in curr.of(GUIDANCE).watched.items():
        if project.pending_id is None:
            continue
        left = longest - max(0, curr.now.at - project.pending_since)
        key = f"{PREFIX}guidance:{project.pending_id}"
        if left > 0:
            verdict = verdict.after_wait(left)
        elif key not in curr.effects.settled_at and key not in curr.effects.keys:
            files = " and ".join(project.pending)
            text = f"{files} in {root}/.pulse changed {duration_text(longest)} ago, and no agent has acknowledged it"
            params = {"title": f"{files} of {root[-100:]} not acknowledged", "text": text}
            verdict = verdict.plus(Effect(action=NOTIFY, key=key, params=params, reason=text))
    return verdict
