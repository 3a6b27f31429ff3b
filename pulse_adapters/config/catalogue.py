"""Every setting, derived from the models, so that no list of them can become outdated."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pulse_core.composition import Settings
from pulse_core.model.durations import format_duration
from pulse_core.settings.groups import is_duration
from pulse_core.settings.secrets import is_secret

BOUNDS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))
INLINE = {"table": "inline table", "tables": "inline table, or list of them"}
PLAIN = {bool: "true or false", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one group. kind: the allowed values, in words; inner: the group of a table or of tables.

    A group that has plain settings too has its tables inline; one of tables alone has them under headers.
    choices: the allowed texts, if they are few.
    """

    key: str
    field: FieldInfo
    kind: str
    inner: type[BaseModel] | None = None
    choices: tuple[str, ...] = ()

    @property
    def default(self) -> Any:
        """The value when nothing is written, its groups as mappings by key; None where there is none."""
        if self.field.is_required():
            return None
        return _plain(self.field.get_default(call_default_factory=True))

    @property
    def example(self) -> Any:
        """An allowed value: the default, unless it is empty."""
        example = (self.field.examples or [self.default])[0]
        if not isinstance(example, dict):
            return example
        inner = settings_of(self.inner) if self.inner else ()
        return {**{one.key: one.default for one in inner if one.default is not None}, **example}

    @property
    def headed(self) -> bool:
        """Whether it is written under a header, as `[daemon]` or `[[process]]`."""
        return self.inner is not None and self.kind not in INLINE.values()

    @property
    def secret(self) -> bool:
        """Whether its value must be hidden."""
        return is_secret(self.field)

    @property
    def bounds(self) -> str:
        """What bounds it as words, `at least 100, at most 3600000`; a lower bound of 0 is left out."""
        each = "each one of" if self.kind == "list of texts" else "one of"
        chosen = [f"{each} {', '.join(map(json.dumps, self.choices))}"] if self.choices else []
        return ", ".join(
            [*(words for words in self._bounds() if words not in ("at least 0", "at least 0s")), *chosen]
        )

    @property
    def every_bound(self) -> str:
        """All bounds as words, for an error message."""
        return ", ".join(self._bounds())

    def _bounds(self) -> Iterator[str]:
        for name, words in BOUNDS:
            for bound in self.field.metadata:
                if (number := getattr(bound, name, None)) is not None:
                    yield f"{words} {format_duration(number) if self.kind == 'duration' else number}"


def settings_of(model: type[BaseModel]) -> Sequence[Setting]:
    """The settings of one group, in the order of its class."""
    found = []
    for name, field in model.model_fields.items():
        kind, inner, choices = _kind(field.annotation)
        kind = "duration" if is_duration(field) else kind
        found.append(Setting(field.alias or name, field, kind, inner, choices))
    if all(setting.inner for setting in found):
        return found
    return [replace(setting, kind=INLINE.get(setting.kind, setting.kind)) for setting in found]


def groups(
    model: type[BaseModel] = Settings, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every table with settings of its own: its dotted name and its class."""
    plain = [setting for setting in settings_of(model) if not setting.inner]
    if plain:
        yield ".".join(path), model
    for setting in settings_of(model):
        if setting.inner:
            yield from groups(setting.inner, (*path, setting.key))


def find_setting(path: Sequence[str | int]) -> tuple[type[BaseModel], Setting | None]:
    """The innermost group on the path, and the setting of it that the path names, if there is one."""
    model: type[BaseModel] = Settings
    found: Setting | None = None
    for part in path:
        if isinstance(part, int) or (found and not found.inner):
            continue
        if found and found.inner:
            model = found.inner
        found = next((setting for setting in settings_of(model) if setting.key == part), None)
        if found is None:
            break
    return model, found


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _kind(annotation: Any) -> tuple[str, type[BaseModel] | None, tuple[str, ...]]:
    origin, parts = get_origin(annotation), [part for part in get_args(annotation) if part is not type(None)]
    if origin in (Union, UnionType, Annotated):
        return _kind(parts[0])
    if origin is tuple:
        _, inner, choices = _kind(parts[0])
        return "tables" if inner else "list of texts", inner, choices
    if origin is Literal:
        return "text", None, tuple(parts)
    if origin is dict:
        return "table of texts", None, ()
    if issubclass(annotation, BaseModel):
        return "table", annotation, ()
    return PLAIN[annotation], None, ()
