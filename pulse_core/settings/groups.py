"""What settings groups have in common: their base, and texts that are checked when they are read."""

import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from pulse_core.model.pattern import SearchPattern
from pulse_core.settings.durations import Duration

PATTERN_CHECK = "pattern_check"
"""In a validation's context: a function that raises ValueError for an invalid pattern; None if they are checked already."""


class Group(BaseModel):
    """Base of every settings group: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError(f"{text!r} is no path")
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError(
            f'{text!r} is no absolute path; write the absolute path, as "/bin/sh" or "/run/pulse"'
        )
    return text


def _rooted(text: str) -> str:
    if not text.startswith(("/", "~/")) or "\0" in text:
        raise ValueError(f'{text!r} is no absolute path; write one from "/" or "~/" on')
    return text


def _unit(text: str) -> str:
    if not re.fullmatch(r"[\w:.@\\-]+\.\w+", text):
        raise ValueError(f"{text!r} is no unit's name; write it in full, as 'nginx.service'")
    return text


def _regex(text: str, info: ValidationInfo) -> str:
    if check := (info.context or {}).get(PATTERN_CHECK, SearchPattern):
        check(text)
    return text


def _http_url(text: str) -> str:
    if not is_http_url(text):
        raise ValueError(f"{text!r} is no URL; write it in full, as 'http://127.0.0.1:18080/'")
    if "@" in urlsplit(text).netloc:
        raise ValueError("the URL holds a user or a password, and would be in every event; leave them out")
    return text


def is_http_url(text: str) -> bool:
    """Whether this is an http or https URL in full, with a host and, if any, a possible port."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and _solid(text)
    except ValueError:
        return False


def _solid(text: str) -> bool:
    return text.isprintable() and " " not in text


def distinct(values: Sequence[str]) -> Sequence[str]:
    """The values; raises ValueError if one of them is there twice."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(f"{value!r} is there twice; take one out")
    return values


Path = Annotated[str, AfterValidator(_path)]
"""A path, as the daemon sees it."""

AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""A path from the root on: the daemon's own directory is not the caller's."""

RootedPath = Annotated[str, AfterValidator(_rooted)]
"""A path from the root or from the home of the user that Pulse runs as (`~/…`) on."""

UnitName = Annotated[str, AfterValidator(_unit)]
"""The full name of a unit of systemd."""

Regex = Annotated[str, Field(min_length=1), AfterValidator(_regex)]
"""A regular expression as RE2 has it; an empty one would be found everywhere."""

HttpUrl = Annotated[str, AfterValidator(_http_url)]
"""An http or https URL in full, without user or password: it names its target in the log."""

Word = Annotated[str, Field(min_length=1)]
"""A text that is looked for; an empty one would be found everywhere."""


class Bound(Group):
    """Two bounds with a gap between (hysteresis): a condition is raised at one and cleared at the other.

    The shares are fractions from 0 to 1.
    """

    raise_: float = Field(0.9, alias="raise", gt=0, le=1, description="share at which it is raised")
    clear: float = Field(0.8, ge=0, lt=1, description="share below which it is cleared again")
    for_: Duration = Field(
        0, alias="for", ge=0, description="how long it must be over the bound before it is raised"
    )

    @model_validator(mode="after")
    def _bounds_agree(self) -> "Bound":
        if self.clear >= self.raise_:
            raise ValueError(
                f"clear ({self.clear:g}) is not below raise ({self.raise_:g}); lower clear, so that there is a gap"
            )
        return self
