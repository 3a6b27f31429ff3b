"""Collects every fault of a settings file, each once and with its line: what was given, what is wanted, and an example."""

import copy
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pulse_adapters.config.catalogue import Setting, find_setting, settings_of
from pulse_adapters.config.settings_check import validate
from pulse_adapters.config.toml_lines import Path, locate, nearest
from pulse_adapters.config.toml_writer import dotted, key, value_as_toml
from pulse_core.composition import Settings
from pulse_core.model.errors import hint
from pulse_core.model.text import count
from pulse_core.settings.cross_checks import disagreements
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.settings_group import NamedTables

Placed = tuple[Path, str]
Model = TypeVar("Model", bound=BaseModel)

_WANTED: Mapping[str, str] = {
    "text": "a string",
    "whole number": "a whole number",
    "number": "a number",
    "duration": "a duration as a string",
    "true or false": "true or false",
    "list of texts": "a list of strings",
    "table of texts": "a table of strings",
    "table": "a table",
    "tables": "tables, each under double brackets",
    "inline table": "a table",
    "inline table, or list of them": "a table or a list of tables",
}
_BOUNDS = frozenset({"greater_than_equal", "greater_than", "less_than_equal", "less_than"})


MOST_FAULTS = 50
"""Of a file: nobody reads more, and to find them all would take a hostile file's reader for ever."""

LONGEST = 500
"""Characters of a fault."""


def faults(text: str, data: dict[str, Any], error: ValidationError) -> list[tuple[int, str]]:
    """Each fault as its line and `KEY: what is wrong`, in the file's order: the first ones, and how many more there are."""
    lines, details = locate(text), _details(data, error)
    if more := len(details) - MOST_FAULTS:
        details = sorted(details, key=lambda detail: nearest(lines, detail["loc"]))[:MOST_FAULTS]
    placed = list(_masked_faults(data, details)) if more <= 0 else []
    for detail in details:
        if detail["loc"]:  # what is between tables has none, and is told with its place below
            words = error_sentence(data, detail)
            placed.append(
                (_mentioned(data, detail["loc"], words) if _of_group(detail) else detail["loc"], words)
            )
    placed += _faults_between_tables(data)
    found = sorted({(nearest(lines, path), f"{path_text(data, path)}: {words}") for path, words in placed})
    told = [
        (line, words if len(words) <= LONGEST else f"{words[:LONGEST]}…")
        for line, words in found[:MOST_FAULTS]
    ]
    more = max(0, more) + len(found) - len(told)
    return [*told, (told[-1][0], f"and {count(more, 'more fault')}")] if more else told


def _masked_faults(data: dict[str, Any], details: list[ErrorDetails]) -> Iterator[Placed]:
    """Faults that pydantic masks: a group's own check is not run while one of its keys is faulty.

    So the faulty keys are removed and the rest is checked again; an error about a removed key, or about
    the key that it was probably meant to be, is no fault of the file.
    """
    left, taken = copy.deepcopy(data), set[Path]()
    while gone := {path for detail in details if (path := _take_out(left, detail))} - taken:
        taken |= gone
        try:
            validate(left)
            return
        except ValidationError as error:
            details = _details(left, error)
        for detail in details:
            words = error_sentence(left, detail)
            if detail["loc"] and _of_group(detail) and not _concerns(words, detail["loc"], taken):
                yield _mentioned(left, detail["loc"], words), words


def _faults_between_tables(data: dict[str, Any]) -> Iterator[Placed]:
    """Faults between tables, as far as the tables can be identified; each with the table's place in the file."""
    processes = _partial_tables(data, "process", ProcessSettings, name=None, depends_on=())
    processes = {place: process for place, process in processes.items() if process.name is not None}
    for fault in disagreements(list(processes.values())):
        yield (fault.table, list(processes)[fault.place], fault.key), fault.text
    logs = _partial_tables(data, "log", LogSettings, path=None, unit=None)
    named = NamedTables(list(processes.values()), list(logs.values()))
    for group in Settings.extensions:
        if inner := next(one.inner for one in settings_of(Settings) if one.key == group.name):
            tables = _partial_tables(data, group.name, inner, **group.outline)
            for fault in group.agree(list(tables.values()), named):
                yield (fault.table, list(tables)[fault.place], fault.key), fault.text


def _partial_tables(data: dict[str, Any], table: str, model: type[Model], **keys: Any) -> dict[int, Model]:
    """The tables by their place, valid or not, with only these keys, and these values in place of missing texts."""

    def text_or(value: Any, absent: Any) -> Any:
        if isinstance(absent, tuple):  # the setting takes a list of texts
            return (
                tuple(part for part in value if isinstance(part, str)) if isinstance(value, list) else absent
            )
        return value if isinstance(value, str) else absent

    tables = data.get(table) if isinstance(data.get(table), list) else ()
    made = (
        {key: text_or(value_at(held, (key,)), absent) for key, absent in keys.items()}
        for held in tables or ()
    )
    return {place: model.model_construct(**values) for place, values in enumerate(made)}


def _details(data: dict[str, Any], error: ValidationError) -> list[ErrorDetails]:
    """Pydantic's errors, each with its path as the file has it: without a place where it has one table, not a list."""
    details = error.errors()
    for detail in details:
        path: Path = ()
        for part in detail["loc"]:
            if not (isinstance(part, int) and isinstance(value_at(data, path), dict)):
                path = (*path, part)
        detail["loc"] = path
    return details


def _of_group(detail: ErrorDetails) -> bool:
    """Whether this error is from a group's own check, not about one key."""
    _, setting = find_setting(detail["loc"])
    return detail["type"] == "value_error" and bool(setting and setting.inner)


def _take_out(data: dict[str, Any], detail: ErrorDetails) -> Path | None:
    """Remove the faulty key, or replace its value if it is required; None if neither is possible."""
    path = detail["loc"]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    _, setting = find_setting(path)
    table = value_at(data, path[:-1]) if path else None
    if not isinstance(table, dict) or (setting and setting.inner and isinstance(value_at(data, path), list)):
        return None
    if setting and setting.field.is_required():
        table[path[-1]] = setting.example
    else:
        table.pop(path[-1], None)
    return path


def _concerns(words: str, group: Path, taken: set[Path]) -> bool:
    """Whether a group's fault mentions a key that was removed from it."""
    setting = find_setting(group)[1]
    known = [inner.key for inner in settings_of(setting.inner)] if setting and setting.inner else []
    meant = {str(path[-1]) for path in taken if path[:-1] == group}
    meant |= {near for name in meant for near in get_close_matches(name, known, n=1)}
    return bool(meant & set(re.findall(r"\w+", words)))


def _mentioned(data: dict[str, Any], group: Path, words: str) -> Path:
    """The first key of the group that the message mentions and the file has, or else the group."""
    table = value_at(data, group)
    spoken = re.findall(r"[\w-]+", words)
    return next(((*group, word) for word in spoken if isinstance(table, dict) and word in table), group)


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
    return f"expected {wanted}{bounds}, not {_given(given, setting)}; write {_example(path, setting)}"


def _example(path: Path, setting: Setting) -> str:
    if setting.headed:
        name = dotted([part for part in path if isinstance(part, str)])
        return f"[[{name}]]" if setting.kind == "tables" else f"[{name}]"
    return f"{key(setting.key)} = {value_as_toml(setting, setting.example)}"


def _given(value: Any, setting: Setting) -> str:
    match value:
        case str() if setting.secret:
            return "a string"
        case str():
            return f"the string {value[:60]!r}"
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
