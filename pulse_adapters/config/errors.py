"""Collects every fault of a settings file, each once and with its line."""

import copy
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pulse_adapters.config.catalogue import find_setting, settings_of
from pulse_adapters.config.error_messages import error_sentence, path_text, value_at
from pulse_adapters.config.settings_check import validate
from pulse_adapters.config.toml_lines import Path, locate, nearest
from pulse_core.composition import Settings
from pulse_core.settings import ProcessSettings
from pulse_core.settings.cross_checks import disagreements

Placed = tuple[Path, str]
Model = TypeVar("Model", bound=BaseModel)


def faults(text: str, data: dict[str, Any], error: ValidationError) -> list[tuple[int, str]]:
    """Each fault as its line and `KEY: what is wrong`, in the file's order."""
    lines, details = locate(text), _details(data, error)
    placed = list(_masked_faults(data, details))
    for detail in details:
        if detail["loc"]:  # what is between tables has none, and is told with its place below
            words = error_sentence(data, detail)
            placed.append(
                (_mentioned(data, detail["loc"], words) if _of_group(detail) else detail["loc"], words)
            )
    placed += _faults_between_tables(data)
    return sorted({(nearest(lines, path), f"{path_text(data, path)}: {words}") for path, words in placed})


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
    for group in Settings.extensions:
        if inner := next(one.inner for one in settings_of(Settings) if one.key == group.name):
            tables = _partial_tables(data, group.name, inner, **group.outline)
            for fault in group.agree(list(tables.values()), list(processes.values())):
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
