"""Durations in settings: microseconds, read from text with a unit."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo
from pydantic.fields import FieldInfo

from pulse_core.model.durations import parse_duration

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
