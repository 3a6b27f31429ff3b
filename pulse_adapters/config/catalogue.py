"""Every setting there is, read off the models, so that no list of them can be forgotten."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pulse_core.settings import Settings, spell_duration
from pulse_core.settings.durations import is_duration

BOUNDS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one group. kind: what may be written there, in words."""

    key: str
    field: FieldInfo
    kind: str
    inner: type[BaseModel] | None = None

    @property
    def default(self) -> Any:
        """The value when nothing is written; None where there is none."""
        return None if self.field.is_required() else self.field.get_default(call_default_factory=True)

    @property
    def example(self) -> Any:
        """Something that may be written there: the default, if it says anything."""
        return (self.field.examples or [self.default])[0]

    @property
    def bounds(self) -> str:
        """The bounds as words, `at least 100, at most 3600000`; that nothing may be negative goes unsaid."""
        return ", ".join(words for name, number, words in self._bounds() if (name, number) != ("ge", 0))

    @property
    def every_bound(self) -> str:
        """The bounds as words, all of them: for whoever went over one."""
        return ", ".join(words for _, _, words in self._bounds())

    def _bounds(self) -> Iterator[tuple[str, int, str]]:
        for name, words in BOUNDS:
            for bound in self.field.metadata:
                if (number := getattr(bound, name, None)) is not None:
                    yield name, number, f"{words} {self.spell(number)}"

    def spell(self, number: int) -> str:
        """A number as it is written for this setting."""
        return spell_duration(number) if self.kind == "duration" else str(number)


def settings_of(model: type[BaseModel]) -> Sequence[Setting]:
    """The settings of one group, in the order of its class."""
    return [_setting(name, field) for name, field in model.model_fields.items()]


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


def find(path: Sequence[str | int]) -> tuple[type[BaseModel], Setting | None]:
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


def _setting(name: str, field: FieldInfo) -> Setting:
    kind, inner = _kind(field.annotation)
    return Setting(field.alias or name, field, "duration" if is_duration(field) else kind, inner)


def _kind(annotation: Any) -> tuple[str, type[BaseModel] | None]:
    origin, parts = get_origin(annotation), [part for part in get_args(annotation) if part is not type(None)]
    if origin in (Union, UnionType, Annotated):
        return _kind(parts[0])
    if origin is tuple:
        inner = _kind(parts[0])[1]
        return ("tables", inner) if inner else ("list of texts", None)
    if origin is dict:
        return "table of texts", None
    if issubclass(annotation, BaseModel):
        return "table", annotation
    return {bool: "true or false", int: "whole number", str: "text"}[annotation], None
