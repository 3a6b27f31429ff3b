"""Everything that is wrong with a settings file, each fault once and with its line."""

import copy
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pulse_adapters.config.catalogue import find, settings_of
from pulse_adapters.config.checking import validate
from pulse_adapters.config.lines import Path, locate, nearest
from pulse_adapters.config.words import at, said, wrong
from pulse_core.settings import ProcessSettings
from pulse_core.settings.settings import disagreements

Placed = tuple[Path, str]


def faults(text: str, data: dict[str, Any], error: ValidationError) -> list[tuple[int, str]]:
    """Each fault as its line and `KEY: what is wrong`, in the file's order."""
    lines = locate(text)
    details = error.errors()
    placed = [*_own(data, details), *_overlooked(data, details), *_between(data)]
    return sorted({(nearest(lines, path), f"{said(data, path)}: {words}") for path, words in placed})


def _own(data: dict[str, Any], details: list[ErrorDetails]) -> Iterator[Placed]:
    """What pydantic found, but for what is wrong between processes: that is told with its place below."""
    for detail in details:
        if detail["loc"]:
            words = wrong(data, detail)
            yield (_mentioned(data, detail["loc"], words) if _of_group(detail) else detail["loc"]), words


def _overlooked(data: dict[str, Any], details: list[ErrorDetails]) -> Iterator[Placed]:
    """What pydantic passes over: a group's own check is not run while one of its keys is faulty.

    So the faulty keys are taken out and the rest is checked again; what is then said about a key that was
    taken out, or that it was probably meant to be, is no fault of the file.
    """
    left, taken = copy.deepcopy(data), set[Path]()
    while gone := {path for detail in details if (path := _take_out(left, detail))}:
        taken |= gone
        details = _details(left)
        for detail in details:
            words = wrong(left, detail)
            if detail["loc"] and _of_group(detail) and not _concerns(words, detail["loc"], taken):
                yield _mentioned(left, detail["loc"], words), words


def _between(data: dict[str, Any]) -> Iterator[Placed]:
    """What is wrong between processes, as far as they have a name."""
    tables = data.get("process")
    names = [
        (place, at(tables, (place, "name")))
        for place in range(len(tables) if isinstance(tables, list) else 0)
    ]
    places = [place for place, name in names if isinstance(name, str)]
    for fault in disagreements([_outline(tables, place) for place in places]):
        yield ("process", places[fault.place], fault.key), fault.text


def _outline(tables: Any, place: int) -> ProcessSettings:
    """A process that is valid or not, with just its name and what it depends on."""
    others = at(tables, (place, "depends_on"))
    known = tuple(other for other in others if isinstance(other, str)) if isinstance(others, list) else ()
    return ProcessSettings.model_construct(name=at(tables, (place, "name")), depends_on=known)


def _details(data: dict[str, Any]) -> list[ErrorDetails]:
    try:
        validate(data)
    except ValidationError as error:
        return error.errors()
    return []


def _of_group(detail: ErrorDetails) -> bool:
    """Whether this was said by a group's own check, not about one key."""
    _, setting = find(detail["loc"])
    return detail["type"] == "value_error" and bool(setting and setting.inner)


def _take_out(data: dict[str, Any], detail: ErrorDetails) -> Path | None:
    """Remove the faulty key, or fill in the missing one; its path, or None if there is nothing to do."""
    path = detail["loc"]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    _, setting = find(path)
    table = at(data, path[:-1]) if path else None
    if not isinstance(table, dict) or (setting and setting.kind == "tables"):
        return None
    if detail["type"] == "missing":
        table[path[-1]] = "unnamed"
    else:
        table.pop(path[-1], None)
    return path


def _concerns(words: str, group: Path, taken: set[Path]) -> bool:
    """Whether a group's fault speaks of a key that was taken out of it."""
    setting = find(group)[1]
    known = [inner.key for inner in settings_of(setting.inner)] if setting and setting.inner else []
    meant = {str(path[-1]) for path in taken if path[:-1] == group}
    meant |= {near for name in meant for near in get_close_matches(name, known, n=1)}
    return bool(meant & set(re.findall(r"\w+", words)))


def _mentioned(data: dict[str, Any], group: Path, words: str) -> Path:
    """The first key of the group that the words mention and the file has, or else the group."""
    table = at(data, group)
    spoken = re.findall(r"[\w-]+", words)
    return next(((*group, word) for word in spoken if isinstance(table, dict) and word in table), group)
