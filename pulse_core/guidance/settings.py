"""When people are told that an agent has not noticed their guidance."""

from pydantic import Field

from pulse_core.model.durations import UNITS
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
