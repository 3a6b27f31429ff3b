"""Log files and journal units that are followed for words."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pulse_core.settings.groups import Group, Regex, RootedPath, UnitName, Word


def _files(text: str) -> str:
    if text.endswith("/"):
        raise ValueError(f"{text!r} is a directory; name the files in it, as {text + '*.log'!r}")
    return text


class LogSettings(Group):
    """One `[[log]]`: files or a journal unit, and what is looked for in their lines."""

    path: Annotated[RootedPath, AfterValidator(_files)] | None = Field(
        None, description="files to follow; * and ? as in a shell", examples=["/var/log/agent/*.log"]
    )
    unit: UnitName | None = Field(
        None, description="unit whose journal to follow", examples=["agent.service"]
    )
    user: bool = Field(False, description="the unit belongs to the user's manager, not the system's")
    keywords: tuple[Word, ...] = Field(
        (),
        description="texts, any of which makes a line count; case matters",
        examples=[["ERROR", "Traceback"]],
    )
    match: tuple[Regex, ...] = Field(
        (), description="regular expressions, any of which makes a line count", examples=[["status=5\\d\\d"]]
    )
    ignore: tuple[Word, ...] = Field(
        (), description="texts, any of which makes a line not count after all", examples=[["ERROR: none"]]
    )
    severity: Literal["warning", "error", "critical"] = Field("error", description="how bad such a line is")
    lines_per_minute: int = Field(
        600,
        ge=1,
        le=100_000,
        description="lines a minute of one file that are recorded, five times as many of all files together; more are "
        "only counted, as is what goes beyond 20,000 short or 4,000 long lines of all logs; half of the first is "
        "shared equally among its files, half of the second among the logs, so that none takes another one's part",
    )

    @model_validator(mode="after")
    def _says_where_and_what(self) -> "LogSettings":
        if (self.path is None) == (self.unit is None):
            raise ValueError("give either path or unit, to say what is followed")
        if not self.keywords and not self.match:
            raise ValueError("nothing is looked for; give keywords or match")
        if self.user and not self.unit:
            raise ValueError("user says whose the unit is, but there is no unit; give it too")
        return self
