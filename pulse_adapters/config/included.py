"""`config.toml` with what `conf.d/*.toml` beside it adds: one text, of which each line is known by its file.

Such a file holds only tables under double brackets (`[[process]]`), so that the texts one after another are one TOML text.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.config.toml_file import LARGEST, TomlFile, parse_toml, read_toml, refusal, refuse_others
from pulse_adapters.config.toml_lines import locate, nearest
from pulse_core.model.errors import SettingsRefused
from pulse_core.model.text import one_line

NAME, FOLDER = "config.toml", "conf.d"
"""The name of the file in a home, and of the folder beside it: they lie beside what must not be deleted."""

MOST_FILES = 64


class SettingsText(NamedTuple):
    """The text of all files and the values in it; files: each with the number of lines that are before it."""

    text: str
    data: dict[str, Any]
    files: tuple[tuple[int, Path], ...]

    def at(self, line: int) -> str:
        """A line of the text as `FILE:LINE`."""
        before, path = next(one for one in reversed(self.files) if one[0] < line or not one[0])
        return f"{one_line(path)}:{line - before}"

    def same_names(self) -> Iterator[tuple[int, int]]:
        """The lines of two tables of one kind that have one name: the later one's, and the first one's."""
        lines = locate(self.text)
        for kind, tables in self.data.items():
            first = dict[str, int]()
            for place, table in enumerate(tables) if isinstance(tables, list) else ():
                if isinstance(table, dict) and isinstance(name := table.get("name"), str):
                    line = nearest(lines, (kind, place, "name"))
                    if (there := first.setdefault(name, line)) != line:
                        yield line, there


def read_settings(path: Path) -> SettingsText:
    """The file's text and values, with those of `conf.d/*.toml` beside it if it has a home's name.

    Raises SettingsRefused with the fault and its line, or NoHome.
    """
    is_home = path.name == NAME
    owners = {0, os.geteuid(), *_owner(path.parent)} if is_home else ()
    main = read_toml(path, owners)
    parts = _parts(path.with_name(FOLDER), owners) if is_home else ()
    if not parts:
        return SettingsText(*main, ((0, path),))
    text, files = main.text, [(0, path)]
    for part in parts:
        text += "" if text.endswith("\n") else "\n"
        files.append((text.count("\n"), part))
        text += _included(part, owners).text
        if len(text) > LARGEST:
            raise refusal(part, 1, f"with it the settings have more than {LARGEST} characters")
    whole = SettingsText(text, {}, tuple(files))
    try:
        return whole._replace(data=parse_toml(path, text).data)
    except SettingsRefused as refused:
        raise SettingsRefused([_placed(whole, path, fault) for fault in refused.faults]) from refused


def _owner(folder: Path) -> Iterator[int]:
    with suppress(OSError):
        yield folder.stat().st_uid


def _parts(folder: Path, owners: Collection[int]) -> tuple[Path, ...]:
    try:
        refuse_others(folder, folder.stat(), owners)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".toml") and name[0] != ".")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise refusal(folder, 1, f"can't be read: {error.strerror}") from error
    if len(names) > MOST_FILES:
        raise refusal(folder, 1, f"there are {len(names):,} files; at most {MOST_FILES} are read")
    return tuple(folder / name for name in names)


def _included(part: Path, owners: Collection[int]) -> TomlFile:
    file = read_toml(part, owners)
    for key, value in file.data.items():
        if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
            line = nearest(locate(file.text), (key,))
            words = (
                f"{key}: here only tables under double brackets may be, as [[process]]; put this into {NAME}"
            )
            raise refusal(part, line, words)
    return file


def _placed(whole: SettingsText, path: Path, fault: str) -> str:
    line, _, words = fault.removeprefix(f"{one_line(path)}:").partition(":")
    return f"{whole.at(int(line))}:{words}"
