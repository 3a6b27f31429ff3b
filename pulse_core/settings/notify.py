"""Where notices go besides the log."""

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.settings.groups import Duration, Group
from pulse_core.settings.secrets import NoticeUrl

SECOND, HOUR = UNITS["s"], UNITS["h"]


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
