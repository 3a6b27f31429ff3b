"""Names in a home that a person may want to type: processes, effects, kinds, vitals."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from glob import glob
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.config.instances import BASE, instance_at
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.model.effect_kinds import SETTLING
from pulse_core.model.errors import PulseError
from pulse_core.model.text import one_line
from pulse_core.ports.readers import EventQuery

NEWEST = 2_000
"""Rows at the end of the log in which effects are looked for: somebody waits at a prompt."""


def processes(home: Home, _begun: str = "") -> Iterator[str]:
    """What the settings guard, whether or not they are good as a whole."""
    try:
        found = tomllib.loads(home.config.read_text()).get("process", ())
    except ValueError:  # no TOML, or no text
        return
    names = (one.get("name") for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()
    yield from (name for name in names if isinstance(name, str))


def effects(home: Home, begun: str, only_open: bool = False) -> Iterator[str]:
    """Keys of the newest effects, newest first; ids for whoever begins to type one."""
    with SqliteEventReader(home.path) as log:
        since = max(0, log.head().seq - NEWEST)
        rows = list(log.events(EventQuery(since_seq=since, kinds=("effect", *SETTLING))))
    ends = {row.subject for row in rows if row.kind != "effect"}
    wishes = [row for row in reversed(rows) if row.kind == "effect" and not (only_open and row.id in ends)]
    yield from (row.subject for row in wishes)
    if begun:
        yield from (row.id for row in wishes)


def open_effects(home: Home, begun: str) -> Iterator[str]:
    """The same of effects that are not settled."""
    return effects(home, begun, only_open=True)


def explained(home: Home, begun: str) -> Iterator[str]:
    """Effects, and processes, which stand for their last effect."""
    yield from processes(home)
    yield from effects(home, begun)


def vitals(home: Home, _begun: str) -> Iterator[str]:
    """Every number that was sensed last."""
    from pulse_core.app.series import numbers

    with SqliteVitalsReader(home.path) as reader:
        for sample in reader.last_samples():
            yield from (name for name, _ in numbers(sample.data, sample.key))


def kinds(_home: Home, _begun: str) -> Iterator[str]:
    """The kinds of events."""
    from pulse_core.composition import KINDS

    yield from KINDS


def projections(_home: Home, _begun: str) -> Iterator[str]:
    """The parts of the state."""
    from pulse_core.composition import FOLD

    return iter(FOLD.projections)


def scenes(_home: Home, _begun: str) -> Iterator[str]:
    """What can be played."""
    from pulse_core.app.demo import SCENES

    return iter(SCENES)


def instances(_home: Home, _begun: str) -> Iterator[str]:
    """The instances whose homes lie beside the usual one."""
    paths = sorted(glob(os.path.expanduser(f"{BASE}-*")))
    return (name for path in paths if (name := instance_at(Path(path))))


Source = Callable[[Home, str], Iterator[str]]
SOURCES: Mapping[str, Source] = {
    "effects": effects,
    "instances": instances,
    "kinds": kinds,
    "open effects": open_effects,
    "processes": processes,
    "processes and effects": explained,
    "projections": projections,
    "scenes": scenes,
    "vitals": vitals,
}


def candidates(source: str | Source, home: str | None, begun: str) -> list[str]:
    """What a home knows of this sort that begins so; nothing, if it can't be read: a prompt is no place for words."""
    try:
        found = (SOURCES[source] if isinstance(source, str) else source)(Home.resolve(home), begun)
        return [one_line(name) for name in dict.fromkeys(found) if name.startswith(begun)]
    except (PulseError, OSError):
        return []
