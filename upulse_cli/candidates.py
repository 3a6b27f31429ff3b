"""Names in a home that a person may want to type: processes, effects, kinds, vitals."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.config.instances import BASE, instance_at
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.model.effect_kinds import SETTLING
from pulse_core.model.event import Event
from pulse_core.ports.readers import EventQuery
from upulse_cli.capabilities import packages
from upulse_cli.completing import Candidate, Source

NEWEST = 2_000
"""Rows at the end of the log in which effects are looked for: somebody waits at a prompt."""


def processes(home: Home, _begun: str = "") -> Iterator[Candidate]:
    """What the settings guard, whether or not they are good as a whole."""
    try:
        found = tomllib.loads(home.config.read_text()).get("process", ())
    except ValueError:  # no TOML, or no text
        return
    names = (one.get("name") for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()
    yield from (Candidate(name, "guarded process") for name in names if isinstance(name, str))


def effects(home: Home, begun: str, only_open: bool = False) -> Iterator[Candidate]:
    """Keys of the newest effects, newest first; ids for whoever begins to type one."""
    with SqliteEventReader(home.path) as log:
        since = max(0, log.head().seq - NEWEST)
        rows = list(log.events(EventQuery(since_seq=since, kinds=("effect", *SETTLING))))
    ends = {row.subject: row.kind for row in rows if row.kind != "effect"}
    wishes = [row for row in reversed(rows) if row.kind == "effect" and not (only_open and row.id in ends)]
    yield from (Candidate(row.subject, _end(row, ends)) for row in wishes)
    if begun:
        yield from (Candidate(row.id, f"{row.subject}, {_end(row, ends)}") for row in wishes)


def _end(wish: Event, ends: Mapping[str, str]) -> str:
    return ends.get(wish.id, "effect-open").removeprefix("effect-")


def open_effects(home: Home, begun: str) -> Iterator[Candidate]:
    """The same of effects that are not settled."""
    return effects(home, begun, only_open=True)


def explained(home: Home, begun: str) -> Iterator[Candidate]:
    """Effects, and processes, which stand for their last effect."""
    yield from processes(home)
    yield from effects(home, begun)


def vitals(home: Home, _begun: str) -> Iterator[Candidate]:
    """Every number that was sensed last."""
    from pulse_core.app.series import numbers

    with SqliteVitalsReader(home.path) as reader:
        for sample in reader.last_samples():
            yield from (Candidate(name, f"{value:.4g}") for name, value in numbers(sample.data, sample.key))


def kinds(_home: Home, _begun: str) -> Iterator[Candidate]:
    """The kinds of events, with the first sentence of what they say."""
    import pulse_core.model.kinds  # noqa: F401  (defining the kinds is what registers them)
    from pulse_core.model.payload import KINDS

    for name, kind in KINDS.items():
        yield Candidate(name, " ".join((kind.__doc__ or "").split()).partition(". ")[0].rstrip("."))


def projections(_home: Home, _begun: str) -> Iterator[Candidate]:
    """The parts of the state."""
    from pulse_core.composition import FOLD

    return (Candidate(name) for name in FOLD.projections)


def scenes(_home: Home, _begun: str) -> Iterator[Candidate]:
    """What can be played."""
    from upulse_cli.scenes import SCENES

    return (Candidate(name, scene.about) for name, scene in SCENES.items())


def instances(_home: Home, _begun: str) -> Iterator[Candidate]:
    """The instances whose homes lie beside the usual one."""
    paths = sorted(glob(os.path.expanduser(f"{BASE}-*")))
    return (Candidate(name, path) for path in paths if (name := instance_at(Path(path))))


def shells(_home: Home, _begun: str) -> Iterator[Candidate]:
    """What there are scripts for."""
    from upulse_cli.commands.completion import SHELLS

    return (Candidate(name) for name in SHELLS)


SOURCES: Mapping[str, Source] = {
    "completion shell": shells,
    "demo scene": scenes,
    "effect cancel effect": open_effects,
    "effect retry effect": effects,
    "effect show effect": effects,
    "events kind": kinds,
    "events subject": explained,
    "instance": instances,
    "process start name": processes,
    "process stop name": processes,
    "state part": projections,
    "vitals key": vitals,
    "why effect": explained,
    **{name: source for package in packages() for name, source in getattr(package, "SOURCES", {}).items()},
}
"""Who knows the values of a parameter: by its command and its name, or by its name alone on every command."""
