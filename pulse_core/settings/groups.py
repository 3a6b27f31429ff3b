"""What settings groups have in common: their base, durations, and texts that are checked when they are read."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo

from pulse_core.model.durations import parse_duration
from pulse_core.model.pattern import SearchPattern

AS_WRITTEN: Mapping[str, Any] = {"as_written": True}
"""Validation context for what a person wrote: there a bare number is refused, since nobody means microseconds."""


def is_duration(field: FieldInfo) -> bool:
    """Whether a settings field holds a `Duration`, and not just an integer."""
    return _READ in field.metadata


def _read(value: object, info: ValidationInfo) -> int:
    bare = isinstance(value, int | float) and not isinstance(value, bool) and value != 0
    if bare and (info.context or {}).get("as_written"):
        raise ValueError(f"{value} has no unit; write it in quotes with one, as '{value}s' or '{value}m'")
    return parse_duration(value)


_READ = BeforeValidator(_read)

Duration = Annotated[int, _READ]
"""Integer microseconds, read from text with a unit."""


_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)")
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_number(text: str) -> int:
    """The number that a size stands for, as `2G` for 2,147,483,648; 0 if it is empty. Raises ValueError for what is none."""
    if not text:
        return 0
    if not (shape := _SIZE.fullmatch(text)):
        raise ValueError(f"{text!r} is no size; write a number, or one with a unit, as '2G'")
    return int(shape[1]) * _SIZE_UNITS[shape[2]]


def _size(text: str) -> str:
    size_number(text)
    return text


NUMBER_AS_TEXT = BeforeValidator(lambda value: str(value) if type(value) is int else value)

Size = Annotated[str, NUMBER_AS_TEXT, AfterValidator(_size)]
"""A number of bytes, alone or with K, M, G or T; `size_number` reads it."""


PATTERN_CHECK = "pattern_check"
"""In a validation's context: a function that raises ValueError for an invalid pattern; None if they are checked already."""


class Group(BaseModel):
    """Base of every settings group: frozen, and an unknown key is an error.

    Its model is built when the first value is validated, not when it is defined or made without values: then it is its
    defaults, which stand as they are written, and only what they must agree in is checked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __init__(self, /, **data: Any) -> None:
        cls = type(self)
        if data or any(field.is_required() for field in cls.__pydantic_fields__.values()):
            super().__init__(**data)
            return
        defaults = cls.model_construct()
        for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
            object.__setattr__(self, name, getattr(defaults, name))
        try:
            for check in cls.__pydantic_decorators__.model_validators:
                getattr(self, check)()
        except ValueError:
            super().__init__()  # refuses it in the words of all others

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # what pydantic validates doesn't pass here


def text_check(fits: Callable[[str], object], words: str) -> AfterValidator:
    """Refuses a text that does not fit, with these words about it."""

    def check(text: str) -> str:
        if not fits(text):
            raise ValueError(f"{text!r} {words}")
        return text

    return AfterValidator(check)


def context_check(name: str, usual: Callable[[str], object] | None = None) -> AfterValidator:
    """Calls the function of this name in the validation's context, or the usual one; it raises ValueError."""

    def check(text: str, info: ValidationInfo) -> str:
        if call := (info.context or {}).get(name, usual):
            call(text)
        return text

    return AfterValidator(check)


def is_host_port(text: str, lowest: int = 1) -> bool:
    """Whether this is `host:port`."""
    host, _, port = text.rpartition(":")
    fits = port.isascii() and port.isdigit() and len(port) < 6 and lowest <= int(port) < 65536
    return bool(host) and host.isprintable() and fits


def is_http_url(text: str) -> bool:
    """Whether this is an http or https URL in full, with a host and, if any, a possible port."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        return is_whole and text.isprintable() and " " not in text
    except ValueError:
        return False


def _without_user(text: str) -> str:
    if "@" in urlsplit(text).netloc:
        raise ValueError("the URL holds a user or a password, and would be in every event; leave them out")
    return text


def distinct(values: Sequence[str]) -> Sequence[str]:
    """The values; raises ValueError if one of them is there twice."""
    seen = set[str]()
    for value in values:
        if value in seen:
            raise ValueError(f"{value!r} is there twice; take one out")
        seen.add(value)
    return values


Path = Annotated[str, text_check(lambda text: text and "\0" not in text, "is no path")]
"""A path, as the daemon sees it."""

AbsolutePath = Annotated[
    str,
    text_check(
        lambda text: text.startswith("/") and "\0" not in text,
        'is no absolute path; write the absolute path, as "/usr/local/bin/clean-up" or "/srv"',
    ),
]
"""A path from the root on: the daemon's own directory is not the caller's."""

RootedPath = Annotated[
    str,
    text_check(
        lambda text: text.startswith(("/", "~/")) and "\0" not in text,
        'is no absolute path; write one from "/" or "~/" on',
    ),
]
"""A path from the root or from the home of the user that Pulse runs as (`~/…`) on."""

UnitName = Annotated[
    str,
    text_check(
        re.compile(r"[\w:.@\\-]+\.\w+").fullmatch, "is no unit's name; write it in full, as 'nginx.service'"
    ),
]
"""The full name of a unit of systemd."""

AccountName = Annotated[
    str,
    Field(max_length=64),
    text_check(
        re.compile(r"[^\0-\x1f:/\x7f]*").fullmatch, "is no name of a user or group that a machine can have"
    ),
]
"""The name of a user or a group; empty for the usual one."""

Regex = Annotated[str, Field(min_length=1), context_check(PATTERN_CHECK, SearchPattern)]
"""A regular expression as RE2 has it; an empty one would be found everywhere."""

HttpUrl = Annotated[
    str,
    text_check(is_http_url, "is no URL; write it in full, as 'http://127.0.0.1:18080/'"),
    AfterValidator(_without_user),
]
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
