"""Values as TOML, and the settings in force as a whole file of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, settings_of
from pulse_core.composition import Settings
from pulse_core.settings import format_duration, parse_duration


def settings_as_toml(settings: Settings) -> str:
    """The settings in force as valid TOML, defaults filled in, durations with units; loads to the same value.

    Secrets are hidden, and their placeholder is refused when it is loaded.
    """
    return "\n".join(_table(Settings, settings.model_dump(by_alias=True), ())).strip() + "\n"


def value_as_toml(setting: Setting, value: Any) -> str:
    """The value of one setting as TOML; groups are given as mappings by key."""
    if setting.inner and isinstance(value, Mapping):
        pairs = [(inner, value.get(inner.key)) for inner in settings_of(setting.inner)]
        return inline(
            {inner.key: _Raw(value_as_toml(inner, held)) for inner, held in pairs if held is not None}
        )
    if setting.inner:
        return inline([_Raw(value_as_toml(setting, held)) for held in value])
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
    """A key as TOML, quoted if necessary."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else inline(name)


def dotted(path: Sequence[str]) -> str:
    """A path of keys as TOML, as between the brackets of a header."""
    return ".".join(key(part) for part in path)


class _Raw(str):
    """Text that is TOML already."""

    __slots__ = ()


def _exact(microseconds: int) -> str:
    spelled = format_duration(microseconds)
    return spelled if parse_duration(spelled) == microseconds else f"{microseconds}us"


def _table(model: type[BaseModel], data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """The group's lines: its own settings first, then its tables."""
    settings = settings_of(model)
    if path and not all(setting.headed for setting in settings):
        yield from ("", f"[{dotted(path)}]")
    for setting in settings:
        if not setting.headed:
            value = data[setting.key]
            yield f"# {setting.key}: not set" if value is None else _row(setting, value)
    for setting in settings:
        if setting.inner and setting.headed:
            yield from _headed(setting.inner, data[setting.key], (*path, setting.key))


def _headed(model: type[BaseModel], held: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The lines of one table under its header, or of each of many."""
    if isinstance(held, Mapping):
        yield from _table(model, held, path)
        return
    for data in held:
        yield from ("", f"[[{dotted(path)}]]")
        values = ((setting, data[setting.key]) for setting in settings_of(model))
        yield from (_row(setting, value) for setting, value in values if value is not None)


def _row(setting: Setting, value: Any) -> str:
    return f"{key(setting.key)} = {value_as_toml(setting, value)}"
