"""What completes a value on the command line, by the name of its source."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from glob import glob
from pathlib import Path

from pulse_adapters.config.home import BASE, Home, instance_at
from pulse_core.app.completion import effect_names, vital_names
from pulse_core.model.errors import PulseError
from pulse_core.model.text import one_line
from upulse_cli.wiring.home import home_context


def processes(home: Home, _prefix: str) -> Iterator[str]:
    """The guarded processes that the settings name, also where the settings are faulty."""
    try:
        tables = tomllib.loads(home.config.read_text()).get("process", ())
    except ValueError:  # no TOML, or no text
        return
    names = (
        (one.get("name") for one in tables if isinstance(one, Mapping)) if isinstance(tables, list) else ()
    )
    yield from (name for name in names if isinstance(name, str))


def effects(home: Home, prefix: str, only_open: bool = False) -> Iterator[str]:
    """Effects, newest first."""
    return effect_names(home_context(home), prefix, only_open)


def processes_and_effects(home: Home, prefix: str) -> Iterator[str]:
    """Processes, which stand for their last effect, and effects."""
    yield from processes(home, prefix)
    yield from effects(home, prefix)


def kinds(_home: Home, _prefix: str) -> Iterator[str]:
    """The kinds of events."""
    from pulse_core.composition import KINDS

    yield from KINDS


def projections(_home: Home, _prefix: str) -> Iterator[str]:
    """The parts of the state."""
    from pulse_core.composition import FOLD

    return iter(FOLD.projections)


def scenes(_home: Home, _prefix: str) -> Iterator[str]:
    """The scenes of `upulse demo`."""
    from pulse_core.app.demo import SCENES

    return iter(SCENES)


def instances(_home: Home, _prefix: str) -> Iterator[str]:
    """The instances whose homes lie beside the usual one."""
    paths = sorted(glob(os.path.expanduser(f"{BASE}-*")))
    return (name for path in paths if (name := instance_at(Path(path))))


Source = Callable[[Home, str], Iterator[str]]
SOURCES: Mapping[str, Source] = {
    "effects": effects,
    "instances": instances,
    "kinds": kinds,
    "open effects": partial(effects, only_open=True),
    "processes": processes,
    "processes and effects": processes_and_effects,
    "projections": projections,
    "scenes": scenes,
    "vitals": lambda home, _prefix: vital_names(home_context(home)),
}


def completions(source: str | Source, home: str | None, prefix: str) -> list[str]:
    """The values of this source that begin with `prefix`; none if the home can't be read: a prompt shows no errors."""
    try:
        found = (SOURCES[source] if isinstance(source, str) else source)(Home.resolve(home), prefix)
        return [one_line(name) for name in dict.fromkeys(found) if name.startswith(prefix)]
    except (PulseError, OSError):
        return []
