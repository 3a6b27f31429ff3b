"""Finds packages with plugins by their metadata, without importing anything of theirs."""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from typing import NamedTuple

GROUP = "pulse.plugins"


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
    """All entry points of Pulse's group in these folders (by default those of `sys.path`), by name."""
    found = (
        Entry(point.name, point.value.partition("[")[0].strip(), package.name, package.version)
        for package in distributions(path=list(sys.path if folders is None else folders))
        for point in package.entry_points
        if point.group == GROUP
    )
    return sorted(found, key=lambda entry: entry.name)
