"""Whom to tell, how often, and when to be silent."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pulse_core.settings.durations import UNITS, Duration
from pulse_core.settings.groups import Group
from pulse_core.settings.secrets import NoticeUrl

SECOND, HOUR = UNITS["s"], UNITS["h"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def _clock_time(text: str) -> str:
    if not re.fullmatch(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise ValueError(f"{text!r} is no time of day; write it as '02:30'")
    return text


class NotifySettings(Group):
    """`[notify]`: where notices go besides the log."""

    urls: tuple[NoticeUrl, ...] = Field(
        (),
        repr=False,
        description="Apprise URLs; a secret one is named by its environment variable",
        examples=[["env:PULSE_NOTIFY_URL"]],
    )
    group: Duration = Field(
        2 * SECOND, ge=0, description="how long a notice waits for others that go out with it as one message"
    )
    remind: Duration = Field(
        4 * HOUR, ge=0, description="how often a notice is repeated while what it says lasts; 0: never"
    )
    per_hour: int = Field(
        30, ge=0, le=10_000, description="messages an hour; what is over goes into the next one. 0: no limit"
    )


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
    at: Annotated[str, AfterValidator(_clock_time)] = Field(
        description="time of day at which it begins, in UTC", examples=["02:30"]
    )
    for_: Duration = Field(
        alias="for", gt=0, le=7 * 24 * HOUR, description="how long it lasts", examples=["2h"]
    )
    why: str = Field("", description="what for, for whoever asks", examples=["backups"])
