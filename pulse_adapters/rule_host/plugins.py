"""Finds packages with plugins by their metadata, and lists what these define in a process of its own: here none runs."""

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.workers.child_side import answer_once
from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import python_environment
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.worker import module_program
from pulse_core.model.errors import PulseError

GROUP = "pulse.plugins"
PATIENCE = 10.0
"""Seconds that a plugin may take to be imported."""


class Entry(NamedTuple):
    """An entry point of Pulse's group: its name, `module:attribute`, and the package with its version."""

    name: str
    value: str
    package: str
    version: str


class PluginParts(NamedTuple):
    """The names that a plugin defines, by part; error: why they are not known."""

    rules: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    error: str | None = None


def plugin_entries() -> Mapping[str, str]:
    """`module:attribute` by name, as hosts take them; of two with one name, the first on the path counts."""
    return {entry.name: entry.value for entry in reversed(entries())}


def entries(folders: Sequence[str] | None = None) -> Sequence[Entry]:
    """All entry points of Pulse's group in these folders (by default those of `sys.path`), by name."""
    path = list(sys.path if folders is None else folders)
    if not any(map(_may_have_plugins, path)):
        return ()
    from importlib.metadata import (
        distributions,  # slow to import, and as slow to ask: nearly nobody has plugins
    )

    found = (
        Entry(point.name, point.value.partition("[")[0].strip(), package.name, package.version)
        for package in distributions(path=path)
        for point in package.entry_points
        if point.group == GROUP
    )
    return sorted(found, key=lambda entry: entry.name)


def _may_have_plugins(folder: str) -> bool:
    """Whether metadata in this folder of the path names Pulse's group; of what is no folder, or unreadable, nobody knows."""
    if not os.path.isdir(folder or "."):
        return os.path.exists(folder)
    try:
        return any(
            GROUP.encode() in one.read_bytes()
            for one in Path(folder).glob("*-[Ii][Nn][Ff][Oo]/entry_points.txt")
        )
    except OSError:
        return True


def installed_plugins() -> Sequence[Mapping[str, Any]]:
    """Every installed plugin: its name, its package with the version, what it defines, and any error."""
    return [{**entry._asdict(), **_parts(entry.value)._asdict()} for entry in entries()]


def _parts(value: str) -> PluginParts:
    env = {**python_environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = module_program("pulse_adapters.rule_host.plugins", env=env)
    try:
        return asyncio.run(ask(program, {"value": value}, PluginParts, seconds=PATIENCE))
    except WorkerFault as error:
        return PluginParts(error=f"importing {value} {error}")
    except PulseError as error:
        return PluginParts(error=str(error))


def contents(request: Message) -> Mapping[str, Any]:
    """The names that an entry point's value defines; it is imported in this process."""
    from pkgutil import resolve_name

    from pulse_adapters.rule_host.loader import load_plugin
    from pulse_core.rules.onion import rule_name

    try:
        thing = resolve_name(request["value"])
        return {
            "rules": [rule_name(rule) for rule in load_plugin(request["value"])[0]],
            "projections": list(getattr(thing, "projections", ())),
            "watchers": _called("name", getattr(thing, "watchers", ())),
            "executors": _called("action", getattr(thing, "executors", ())),
        }
    except Exception as error:
        raise PulseError(f"{type(error).__name__}: {error}") from error


def _called(attribute: str, things: Iterable[Any]) -> list[str]:
    return [str(getattr(one, attribute, type(one).__name__)) for one in things]


if __name__ == "__main__":
    answer_once(contents)
