"""Values as TOML, and the settings in force as a whole file of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, settings_of
from pulse_core.composition import Settings
from pulse_core.model.durations import format_duration, parse_duration


def settings_as_toml(settings: Settings) -> str:
    """The settings in force as valid TOML, defaults filled in, durations with units; loads to the same value.

    Secrets are hidden, and their placeholder is refused when it is loaded.
    """
    return "\n".join(_table(Settings, settings.model_dump(by_alias=True), ())).strip() + "\n"


def value_as_toml(setting: Setting, value: Any) -> str:
    """The value of one setting as TOML; groups are given as mappings by key."""
    if setting.inner and isinstance(value, Mapping):
        pairs = [(inner, value.get(inner.key)) for inner in settings_of(setting.inner)]
        return _table_of({one.key: value_as_toml(one, held) for one, held in pairs if held is not None})
    if setting.inner:
        return f"[{', '.join(value_as_toml(setting, held) for held in value)}]"
    if setting.kind == "duration" and isinstance(value, int):
        text = format_duration(value)
        return json.dumps(text if parse_duration(text) == value else f"{value}us")
    return inline(value)


def inline(value: Any) -> str:
    """A plain value as TOML on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return _table_of({name: inline(held) for name, held in value.items()})
    if isinstance(value, Sequence):
        return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value)


def _table_of(values: Mapping[str, str]) -> str:
    """An inline table of values that are TOML already."""
    pairs = ", ".join(f"{key(name)} = {value}" for name, value in values.items())
    return f"{{ {pairs} }}" if pairs else "{}"


def key(name: str) -> str:
    """A key as TOML, quoted if necessary."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else inline(name)


def dotted(path: Sequence[str]) -> str:
    """A path of keys as TOML, as between the brackets of a header."""
    return ".".join(key(part) for part in path)


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
