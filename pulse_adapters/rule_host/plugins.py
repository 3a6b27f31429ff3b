"""Finds packages with plugins by their metadata, without importing anything of theirs."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

GROUP = "pulse.plugins"
_BESIDE = (".dist-info", ".egg-info")
_FILE = "entry_points.txt"


class Entry(NamedTuple):
    """An entry point of Pulse's group: its name, `module:attribute`, and the package with its version."""

    name: str
    value: str
    package: str
    version: str


def plugin_entries() -> Mapping[str, str]:
    """`module:attribute` by name, as hosts take them; of two with one name, the first on the path counts."""
    return {entry.name: entry.value for entry in reversed(entries())}


def entries(folders: Sequence[str] | None = None) -> Sequence[Entry]:
    """All entry points of Pulse's group in these folders (by default those of `sys.path`), by name.

    `importlib.metadata` finds the same, but stays in memory for as long as the daemon lives.
    """
    found = [entry for folder in (sys.path if folders is None else folders) for entry in _in_folder(folder)]
    return sorted(found, key=lambda entry: entry.name)


def _in_folder(folder: str) -> Iterator[Entry]:
    try:
        names = sorted(name for name in os.listdir(folder or ".") if name.endswith(_BESIDE))
    except OSError:
        return
    for name in names:
        package, _, version = name.rpartition(".")[0].partition("-")
        for entry, value in _written(os.path.join(folder, name, _FILE)):
            yield Entry(entry, value, package, version.partition("-")[0])


def _written(path: str) -> Iterable[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return ()
    return _of_group(text) if GROUP in text else ()


def _of_group(text: str) -> Iterator[tuple[str, str]]:
    """The lines of Pulse's group in a file that may hold several groups."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].strip()
