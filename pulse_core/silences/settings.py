"""When effects are held back again and again."""

import re
from typing import Annotated, Literal

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.settings.groups import Duration, Group, text_check
from pulse_core.settings.settings_group import SettingsGroup

HOUR = UNITS["h"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


ClockTime = Annotated[
    str,
    text_check(
        re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]").fullmatch, "is no time of day; write it as '02:30'"
    ),
]


class SilenceSettings(Group):
    """One `[[silence]]`: a maintenance window that comes again, in which matching effects are held back."""

    match: str = Field(
        min_length=1,
        description="key of the effects that are held back; * and ? as in a shell",
        examples=["restart-process:gateway"],
    )
    days: tuple[Day, ...] = Field(
        (), description="days on which it begins; none: every day", examples=[["sat", "sun"]]
    )
    at: ClockTime = Field(description="time of day at which it begins, in UTC", examples=["02:30"])
    for_: Duration = Field(
        alias="for", gt=0, le=7 * 24 * HOUR, description="how long it lasts", examples=["2h"]
    )
    why: str = Field("", description="what for, for whoever asks", examples=["backups"])


WINDOWS: SettingsGroup[tuple[SilenceSettings, ...]] = SettingsGroup(
    "silence", tuple[SilenceSettings, ...], ()
)
