"""Where notices go besides the log."""

from typing import Annotated, Literal

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.model.glob import glob_fault, glob_matches
from pulse_core.model.names import NOTICE_SEVERITIES, NOTIFY
from pulse_core.settings.groups import Duration, Group, text_check
from pulse_core.settings.secrets import NoticeUrl

SECOND, HOUR = UNITS["s"], UNITS["h"]


class NoticeRoute(Group):
    """One `[[notify_route]]`: addresses that some notices go to, besides those of `[notify] urls`, which get all of them."""

    urls: tuple[NoticeUrl, ...] = Field(
        min_length=1,
        repr=False,
        description="Apprise URLs, as those of `[notify]`",
        examples=[["env:PAGER_URL"]],
    )
    severity: Literal["info", "warning", "error", "critical"] = Field(
        "info", description="how severe a notice must be to go there"
    )
    match: Annotated[
        str,
        text_check(lambda text: not glob_fault(text), "is no pattern of topics"),
        text_check(
            lambda text: not text.startswith(f"{NOTIFY}:"),
            "fits no topic, which is a notice's key without 'notify:'",
        ),
    ] = Field(
        "*",
        description="topics of the notices that go there, with * and ? as in a shell",
        examples=["flapping:*"],
    )

    def takes(self, severity: str, topic: str) -> bool:
        """Whether a notice of this severity and topic goes there."""
        rank = NOTICE_SEVERITIES.index
        return rank(severity) >= rank(self.severity) and glob_matches(self.match, topic)


class NotifySettings(Group):
    """`[notify]`: where notices go besides the log."""

    urls: tuple[NoticeUrl, ...] = Field(
        (),
        repr=False,
        description="Apprise URLs that all notices go to; a secret one is named by its environment variable",
        examples=[["env:PULSE_NOTIFY_URL"]],
    )
    group: Duration = Field(
        2 * SECOND, ge=0, description="how long a notice waits for others that go out with it as one message"
    )
    remind: Duration = Field(
        4 * HOUR, ge=0, description="how often a notice is repeated while what it says lasts; 0: never"
    )
    per_hour: int = Field(
        30,
        ge=0,
        le=10_000,
        description="messages an hour that arrive somewhere; what is over goes into the next one, but for critical notices, "
        "which have as many again; those of rules of an engine or plugin hold back only these. 0: no limit",
    )
