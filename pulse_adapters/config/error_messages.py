"""Pydantic's errors in plain words: what was given, what is wanted, and an example."""

from collections.abc import Mapping
from datetime import date, time
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from pulse_adapters.config.catalogue import Setting, find_setting, settings_of
from pulse_adapters.config.toml_lines import Path
from pulse_adapters.config.toml_writer import dotted, key, value_as_toml
from pulse_core.model.errors import hint

_WANTED: Mapping[str, str] = {
    "text": "a text in quotes",
    "whole number": "a whole number",
    "number": "a number",
    "duration": "a duration in quotes",
    "true or false": "true or false",
    "list of texts": "a list of texts",
    "table of texts": "a table of texts",
    "table": "a table",
    "tables": "tables, each under double brackets",
    "inline table": "a table",
    "inline table, or list of them": "a table or a list of tables",
}
_BOUNDS = frozenset({"greater_than_equal", "greater_than", "less_than_equal", "less_than"})


def path_text(data: Mapping[str, Any], path: Path) -> str:
    """A path in readable form: `process.gateway.restart.max`, an unnamed one by its place from 1."""
    words = ""
    for length, part in enumerate(path, 1):
        if isinstance(part, str):
            words += f".{key(part)}" if words else key(part)
        else:
            name = value_at(data, (*path[:length], "name"))
            words += f".{name}" if isinstance(name, str) and name.isprintable() else f"[{part + 1}]"
    return words or "settings"


def value_at(data: Any, path: Path) -> Any:
    """The value at this path of the parsed file, or None."""
    for part in path:
        try:
            data = data[part]
        except (LookupError, TypeError):
            return None
    return data


def error_sentence(data: Mapping[str, Any], detail: ErrorDetails) -> str:
    """One of pydantic's errors as a sentence for the file's author."""
    path, what = detail["loc"], detail["type"]
    group, setting = find_setting(path)
    given = value_at(data, path)
    if what == "value_error" and not isinstance(given, date | time):
        return str(detail["ctx"]["error"])
    if what == "extra_forbidden":
        return f"unknown key {path[-1]!r}{hint(str(path[-1]), [known.key for known in settings_of(group)])}"
    if setting is None:
        return detail["msg"]
    if what == "missing":
        return f"is missing ({setting.field.description}); write {_example(path, setting)}"
    if what == "string_too_short":
        return f"is empty; write {_example(path, setting)}"
    if what in _BOUNDS:
        return f"{given!r} is out of bounds: {setting.every_bound}"
    if what == "literal_error" and isinstance(given, str):
        near = [f" (did you mean {one!r}?)" for one in get_close_matches(given.lower(), setting.choices, n=1)]
        return f"{given!r} is none of {', '.join(map(repr, setting.choices))}{''.join(near)}"
    wanted = _WANTED["text" if isinstance(path[-1], int) and not setting.inner else setting.kind]
    bounds = f" ({setting.bounds})" if setting.bounds else ""
    return f"wants {wanted}{bounds}, not {_given(given, setting)}; write {_example(path, setting)}"


def _example(path: Path, setting: Setting) -> str:
    if setting.headed:
        name = dotted([part for part in path if isinstance(part, str)])
        return f"[[{name}]]" if setting.kind == "tables" else f"[{name}]"
    return f"{key(setting.key)} = {value_as_toml(setting, setting.example)}"


def _given(value: Any, setting: Setting) -> str:
    match value:
        case str() if setting.secret:
            return "a text"
        case str():
            return f"the text {value[:60]!r}"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
