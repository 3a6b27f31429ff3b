"""What completes a value on the command line, by the name of its source."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr
from glob import glob
from importlib import import_module
from io import StringIO
from pathlib import Path

from pulse_adapters.config.home import BASE, Home, instance_at
from pulse_adapters.config.included import read_settings
from pulse_adapters.workers.users import expand_home
from pulse_core.app.context import HomeContext
from pulse_core.app.effects import effect_names
from pulse_core.app.series import vital_names
from pulse_core.model.errors import PulseError, SettingsRefused
from pulse_core.model.text import one_line
from upulse_cli.wiring.home import home_context

Source = Callable[[HomeContext, str], Iterable[str]]


def processes(home: HomeContext, _prefix: str = "") -> Iterator[str]:
    """The guarded processes that the settings name, also where the settings are faulty."""
    try:
        tables = read_settings(home.layout.config).data.get("process", ())
    except SettingsRefused:
        return
    for one in tables if isinstance(tables, list) else ():
        if isinstance(one, Mapping) and isinstance(name := one.get("name"), str):
            yield name


def instances(_home: HomeContext, _prefix: str) -> Iterator[str]:
    """The instances whose homes lie beside the usual one."""
    paths = sorted(glob(expand_home(f"{BASE}-*")))
    return (name for path in paths if (name := instance_at(Path(path))))


def table(module: str, name: str) -> Source:
    """The names in a table of the core, whose module is slow to import."""
    return lambda _home, _prefix: getattr(import_module(f"pulse_core.{module}"), name)


SOURCES: Mapping[str, Source] = {
    "effects": effect_names,
    "instances": instances,
    "kinds": table("composition", "KINDS"),
    "open effects": lambda home, prefix: effect_names(home, prefix, only_open=True),
    "processes": processes,
    "processes and effects": lambda home, prefix: (*processes(home), *effect_names(home, prefix)),
    "projections": lambda _home, _prefix: import_module("pulse_core.composition").FOLD.projections,
    "scenes": table("app.demo", "SCENES"),
    "vitals": lambda home, _prefix: vital_names(home),
}


def completions(source: str | Source, home: str | None, prefix: str) -> list[str]:
    """The values of this source that begin with `prefix`; none if the home can't be read: a prompt shows no errors, and no
    words about the log."""
    try:
        with redirect_stderr(StringIO()):
            found = (SOURCES[source] if isinstance(source, str) else source)(
                home_context(Home.resolve(home)), prefix
            )
            return [one_line(name) for name in dict.fromkeys(found) if name.startswith(prefix)]
    except (PulseError, OSError):
        return []
