"""What becomes of runs that do not notice guidance."""

from typing import Literal

from pydantic import Field

from pulse_core.settings.groups import Duration, Group
from pulse_core.settings.settings_group import SettingsGroup


class GuidedRunsSettings(Group):
    """`[guided_runs]`: runs of agents in projects whose guidance or constraints have changed."""

    after: Duration = Field(
        0, ge=0, description="how long a run may go on without an acknowledgement; 0: as long as it wants"
    )
    then: Literal["remind", "pause", "stop"] = Field(
        "pause", description="what becomes of it; remind: people are told of the run, its task and its agent"
    )


SETTINGS: SettingsGroup[GuidedRunsSettings] = SettingsGroup(
    "guided_runs", GuidedRunsSettings, GuidedRunsSettings()
)
