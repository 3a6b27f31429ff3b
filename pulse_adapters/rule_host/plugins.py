"""Finds packages with plugins by their metadata, and lists what these define in a process of its own: here none runs."""

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.workers.child_side import answer_once, limit_memory
from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import python_environment
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.plain_file import read_plain
from pulse_adapters.workers.source_locations import describe_error
from pulse_adapters.workers.worker import module_program

GROUP = "pulse.plugins"
PATIENCE = 10.0
"""Seconds that a plugin may take to be imported."""
PATIENCE_IN_ALL = 60.0
"""Seconds after which no more plugins are asked for."""
MEMORY = 2 << 30
"""Bytes of memory that plugins which are asked for at once may take."""
LARGEST = 1 << 20
"""Bytes of a file of metadata that is read."""


class Entry(NamedTuple):
    """An entry point of Pulse's group: its name, `module:attribute`, and the package with its version.

    Any text may stand in them, or none. error: why the entry points of the package can't be read; its name is their file.
    """

    name: str
    value: str
    package: str
    version: str
    error: str | None = None


class PluginParts(NamedTuple):
    """The names that a plugin defines, by part; error: why they are not known."""

    rules: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    error: str | None = None


class Told(NamedTuple):
    """What each of the values defines that were asked for."""

    parts: tuple[PluginParts, ...]


def plugin_entries() -> Mapping[str, str]:
    """`module:attribute` by name, as hosts take them; of two with one name, the first on the path counts."""
    return {entry.name: entry.value for entry in reversed(entries()) if not entry.error}


def entries(folders: Iterable[str] = sys.path) -> Sequence[Entry]:
    """All entry points of Pulse's group in these folders, by name.

    The daemon reads them before all else: whatever an installer left there, this raises nothing and waits for nothing.
    `importlib.metadata` does, and is slow to import.
    """
    metadata = (Path(folder, name) for folder in folders for name in _names_of_metadata(folder))
    return sorted((entry for one in metadata for entry in _entries_of(one)), key=lambda entry: entry.name)


def _names_of_metadata(folder: str) -> Sequence[str]:
    try:
        return sorted(name for name in os.listdir(folder or ".") if name.lower().endswith("-info"))
    except (OSError, ValueError):  # not there, or no folder; no name of one
        return ()


def _entries_of(metadata: Path) -> Iterator[Entry]:
    file = metadata / "entry_points.txt"
    try:
        text = read_plain(file, LARGEST, follow=True).decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Entry(_text(file), "", *_package(metadata), f"it can't be read: {error.strerror}")
        return
    if GROUP not in text:
        return
    package, group = _package(metadata), ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif group == GROUP and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield Entry(name.strip(), value.partition("[")[0].strip(), *package)


def _package(folder: Path) -> tuple[str, str]:
    """The name and the version of the package whose metadata are here: as these say it, else as the folder's name does."""
    text = ""
    for name in ("METADATA", "PKG-INFO"):
        with suppress(OSError):
            text = read_plain(folder / name, LARGEST, follow=True).decode(errors="replace")
            break
    fields = [line.partition(":") for line in text.partition("\n\n")[0].splitlines()]
    said = {key.lower(): value.strip() for key, _, value in reversed(fields)}
    name, _, version = _text(folder).rpartition("/")[2].rpartition(".")[0].partition("-")
    return said.get("name") or name, said.get("version") or version


def _text(path: Path) -> str:
    return os.fsencode(path).decode(errors="replace")


def installed_plugins() -> Sequence[Mapping[str, Any]]:
    """Every installed plugin: its name, its package with the version, what it defines, and any error."""
    found = entries()
    parts = iter(
        _parts([entry.value for entry in found if not entry.error], time.monotonic() + PATIENCE_IN_ALL)
    )
    return [
        {**entry._asdict(), **(PluginParts(error=entry.error) if entry.error else next(parts))._asdict()}
        for entry in found
    ]


def _parts(values: Sequence[str], until: float) -> Sequence[PluginParts]:
    """What each value defines. All are asked for at once; where that fails, each half by itself, to find whose fault it is.

    until: a time of the monotonic clock after which no more is asked.
    """
    if not values:
        return ()
    if (left := until - time.monotonic()) <= 0:
        why = f"it was not imported: others took {PATIENCE_IN_ALL:g} s"
        return [PluginParts(error=why)] * len(values)
    env = {**python_environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = module_program("pulse_adapters.rule_host.plugins", env=env)
    try:
        told = asyncio.run(ask(program, {"values": values}, Told, seconds=min(PATIENCE, left)))
        if len(told.parts) != len(values):
            raise WorkerFault(f"told of {len(told.parts)}")
        return told.parts
    except WorkerFault as error:
        middle = len(values) // 2
        if not middle:
            return [PluginParts(error=f"importing {values[0]} {error}")]
        return [*_parts(values[:middle], until), *_parts(values[middle:], until)]


def contents(request: Message) -> Mapping[str, Any]:
    """The names that each entry point's value defines, or why it can't be imported; they are, in this process."""
    return {"parts": [_contents(value)._asdict() for value in request["values"]]}


def _contents(value: str) -> PluginParts:
    from pkgutil import resolve_name

    from pulse_adapters.rule_host.loader import load_plugin
    from pulse_core.rules.onion import rule_name

    try:
        rules = load_plugin(value)[0]
        thing = resolve_name(value)
        return PluginParts(
            tuple(map(rule_name, rules)),
            tuple(map(str, getattr(thing, "projections", ()))),
            _called("name", getattr(thing, "watchers", ())),
            _called("action", getattr(thing, "executors", ())),
        )
    except MemoryError:
        raise  # others before it may have taken it: each is asked for by itself then
    except Exception as error:  # noqa: BLE001 - somebody else's code
        return PluginParts(error=describe_error(error))


def _called(attribute: str, things: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(getattr(one, attribute, type(one).__name__)) for one in things)


if __name__ == "__main__":
    limit_memory(MEMORY)
    answer_once(contents)
