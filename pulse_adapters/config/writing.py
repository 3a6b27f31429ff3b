"""Values as TOML, and the settings in force as a whole file of it."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, settings_of
from pulse_core.settings import Settings, parse_duration, spell_duration


def show(settings: Settings) -> str:
    """The settings in force as valid TOML, defaults filled in, durations spelled; loads to the same value."""
    return "\n".join(_table(settings, ())).strip() + "\n"


def spell(setting: Setting, value: Any) -> str:
    """The value of one setting as TOML."""
    if isinstance(value, BaseModel):
        pairs = ((inner, getattr(value, _attribute(value, inner))) for inner in settings_of(type(value)))
        return inline({inner.key: _Raw(spell(inner, held)) for inner, held in pairs if held is not None})
    if setting.kind == "duration" and isinstance(value, int):
        return json.dumps(_exact(value))
    return inline(value)


def inline(value: Any) -> str:
    """A plain value as TOML on one line."""
    if isinstance(value, _Raw):
        return value
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key(name)} = {inline(held)}" for name, held in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(inline(held) for held in value)}]"
    return json.dumps(value)


def key(name: str) -> str:
    """A key as TOML, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else inline(name)


class _Raw(str):
    """Text that is TOML already."""

    __slots__ = ()


def _exact(microseconds: int) -> str:
    spelled = spell_duration(microseconds)
    return spelled if parse_duration(spelled) == microseconds else f"{microseconds}us"


def _attribute(group: BaseModel, setting: Setting) -> str:
    return next(
        name for name, field in type(group).model_fields.items() if setting.key in (field.alias, name)
    )


def _table(group: BaseModel, path: tuple[str, ...]) -> list[str]:
    """The group's lines: its own settings first, then its tables."""
    own: list[str] = []
    below: list[str] = []
    for setting in settings_of(type(group)):
        value = getattr(group, _attribute(group, setting))
        place = (*path, setting.key)
        if setting.kind == "tables":
            for held in value:
                below += ["", f"[[{_dotted(place)}]]", *_pairs(held)]
        elif setting.inner:
            below += _table(value, place)
        elif value is not None:
            own.append(f"{key(setting.key)} = {spell(setting, value)}")
        else:
            own.append(f"# {setting.key}: not set")
    header = ["", f"[{_dotted(path)}]"] if own and path else []
    return [*header, *own, *below]


def _pairs(group: BaseModel) -> list[str]:
    """The group's lines with inner groups on one line each, as they are written in `[[process]]`."""
    values = ((setting, getattr(group, _attribute(group, setting))) for setting in settings_of(type(group)))
    return [f"{key(setting.key)} = {spell(setting, value)}" for setting, value in values if value is not None]


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(key(part) for part in path)
