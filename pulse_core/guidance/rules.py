"""People are told of guidance that no agent has acknowledged."""

from pydantic import Field

from pulse_core.guidance.projection import GUIDANCE
from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.notices import told_while
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
    """Tell people of each change that has waited too long, and when that is over; look again when the next one has."""
    verdict, watched, news = await inner(prev, curr), curr.of(GUIDANCE).watched, dict[str, str]()
    if not (longest := SETTINGS.of(curr.settings).remind_after):
        return verdict
    for root, project in watched.items():
        if project.pending_id is None:
            continue
        if (waits := max(0, curr.now.at - project.pending_since)) < longest:
            verdict = verdict.after_wait(longest - waits)
            continue
        where, ago = f"{' and '.join(project.pending)} in {root}/.pulse", duration_text(waits)
        news[project.pending_id] = f"{where} was seen changed {ago} ago, and no agent has acknowledged it"
    roots = {change.id: root[-100:] for root, project in watched.items() for change in project.recent}
    title = "guidance of {} not acknowledged"
    over = "it is acknowledged, was changed again, or is watched no more"
    return told_while(verdict, curr, "guidance:", news, lambda id_: title.format(roots.get(id_, id_)), over)
